// Fuzzer of the options: an input is an environment.  Whatever stands there, reading it ends, nothing but the table's
// values changes, and each value is what a second, slower reading of the text says.
#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/option_parser.h"
#include "fuzz.h"

extern char** environ;

namespace {

constexpr size_t kGuard = 0x5afe5afe5afe5afe;
constexpr size_t kKinds = 8;
using Wide = unsigned __int128;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits at `at`; nothing if there are none or the number has no room.
std::optional<size_t> number(const std::string& text, size_t& at) {
  size_t from = at;
  Wide value = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    value = value * 10 + static_cast<Wide>(text[at] - '0');
    if (value > SIZE_MAX) return {};
  }
  return at == from ? std::nullopt : std::optional<size_t>(static_cast<size_t>(value));
}

std::optional<size_t> size_in(const std::string& text) {
  size_t at = 0;
  std::optional<size_t> value = number(text, at);
  if (!value) return {};
  Wide bytes = *value;
  size_t power = std::string("?KMG").find(at < text.size() ? static_cast<char>(text[at] & ~0x20) : ' ');
  if (power != std::string::npos && power > 0 && ((text[at] | 0x20) >= 'a')) {
    for (++at; power > 0; --power) bytes *= 1024;
    if (at < text.size() && (text[at] == 'B' || text[at] == 'b')) ++at;
  }
  if (at != text.size() || bytes > SIZE_MAX) return {};
  return static_cast<size_t>(bytes);
}

std::optional<size_t> flag_in(const std::string& text) {
  if (text == "1" || text == "yes" || text == "on" || text == "true") return 1;
  if (text.empty() || text == "0" || text == "no" || text == "off" || text == "false") return 0;
  return {};
}

std::optional<size_t> time_in(const std::string& text) {
  size_t at = 0;
  std::optional<size_t> value = number(text, at);
  std::string unit = text.substr(at);
  if (value == size_t{0} && unit.empty()) return 0;
  Wide ms = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60 * 1000 : unit == "h" ? 60 * 60 * 1000 : 0;
  if (!value || ms == 0 || *value * ms > SIZE_MAX) return {};
  return static_cast<size_t>(*value * ms);
}

std::optional<size_t> thousandths_in(const std::string& text) {
  size_t at = 0;
  std::optional<size_t> whole = number(text, at);
  if (!whole || *whole >= SIZE_MAX / 1000) return {};
  size_t value = *whole * 1000;
  if (at < text.size() && text[at] == '/') {
    std::optional<size_t> below = number(text, ++at);
    if (!below || *below == 0) return {};
    value /= *below;
  } else if (at < text.size() && text[at] == '.') {
    size_t digits = 0;
    for (++at; at < text.size() && is_digit(text[at]); ++at, ++digits)
      if (digits < 3) value += static_cast<size_t>(text[at] - '0') * (digits == 0 ? 100 : digits == 1 ? 10 : 1);
  }
  return at == text.size() ? std::optional<size_t>(value) : std::nullopt;
}

// A size with a fraction, or a percentage.
std::optional<size_t> limit_in(const std::string& text) {
  size_t at = 0;
  if (!number(text, at)) return {};
  size_t point = at;
  if (at < text.size() && text[at] == '.')
    for (++at; at < text.size() && is_digit(text[at]);) ++at;
  std::optional<size_t> fraction = thousandths_in(std::string(1, '0').append(text, point, at - point));
  if (text.substr(at) == "%") {
    size_t share = *number(text, point = 0) * 1000 + *fraction;
    return *number(text, point = 0) <= 100 && share > 0 && share <= 100'000 ? std::optional<size_t>(hm::kShare | share)
                                                                            : std::nullopt;
  }
  std::optional<size_t> whole = size_in(text.substr(0, point) + text.substr(at)),
                        unit = size_in(std::string(1, '1').append(text, at));
  if (!whole || *whole >= hm::kShare || *whole + *fraction * *unit / 1000 >= hm::kShare) return {};
  return *whole + *fraction * *unit / 1000;
}

std::optional<size_t> rate_in(const std::string& text) {
  static const std::string kRate = "heap:rate=";
  if (text.compare(0, kRate.size(), kRate) == 0) {
    auto rate = size_in(text.substr(kRate.size()));
    return rate && *rate > 0 ? rate : std::nullopt;
  }
  if (text == "heap") return hm::kUsualRate;
  auto flag = flag_in(text);
  return flag && *flag == 1 ? std::optional<size_t>(hm::kUsualRate) : flag;
}

std::optional<size_t> expected(hm::OptionKind kind, const std::string& text) {
  size_t at = 0;
  switch (kind) {
    case hm::OptionKind::kFlag: return flag_in(text);
    case hm::OptionKind::kTime: return time_in(text);
    case hm::OptionKind::kStats:
      return text == "json" ? std::optional<size_t>(2) : text == "openmetrics" ? std::optional<size_t>(3) : flag_in(text);
    case hm::OptionKind::kNumber: {
      auto value = number(text, at);
      return at == text.size() ? value : std::nullopt;
    }
    case hm::OptionKind::kSize: return size_in(text);
    case hm::OptionKind::kThousandths: return thousandths_in(text);
    case hm::OptionKind::kLimit: return limit_in(text);
    case hm::OptionKind::kProfile: return rate_in(text);
  }
  return {};
}

// The entries of the input: strings that end in a zero or a line's end; a byte up front may stand for a known beginning.
std::vector<std::string> entries(const uint8_t* data, size_t size) {
  static const char* const kBeginnings[] = {"",
                                            "T_",
                                            "T_FLAG=",
                                            "T_NUMBER=",
                                            "T_SIZE=",
                                            "T_STATS=",
                                            "T_PART=",
                                            "T_STATS_FILE=",
                                            "T_OTHER_",
                                            "HMALLOC_",
                                            "T_LIMIT=",
                                            "T_PROFILE=",
                                            "T_PROFILE=heap:rate=",
                                            "T_TIME="};
  std::vector<std::string> found(1);
  bool first = true;
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == 0 || data[i] == '\n') found.emplace_back(), first = true;
    else if (first && data[i] < std::size(kBeginnings)) found.back() = kBeginnings[data[i]], first = false;
    else found.back() += static_cast<char>(data[i]), first = false;
  }
  return found;
}

struct Table {
  size_t before = kGuard, values[kKinds] = {7, 7, 7, 7, 7, 7, 7, 7}, after = kGuard;
  char file_before = 'x', file[hm::kMaxPath] = {}, file_after = 'x';
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::remember(data, size);
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  static const char* const kNames[kKinds] = {"FLAG", "NUMBER", "SIZE", "STATS", "PART", "LIMIT", "PROFILE", "TIME"};
  static const hm::OptionKind kinds[kKinds] = {
      hm::OptionKind::kFlag,        hm::OptionKind::kNumber, hm::OptionKind::kSize,    hm::OptionKind::kStats,
      hm::OptionKind::kThousandths, hm::OptionKind::kLimit,  hm::OptionKind::kProfile, hm::OptionKind::kTime};
  Table table;
  hm::OptionRow rows[kKinds];
  for (size_t i = 0; i < kKinds; ++i) rows[i] = {kNames[i], kinds[i], &table.values[i]};
  std::vector<std::string> strings = entries(data, size);
  size_t wanted[kKinds] = {7, 7, 7, 7, 7, 7, 7, 7};
  std::string file;
  std::vector<char*> pointers;
  for (std::string& entry : strings) {
    for (size_t i = 0; i < kKinds; ++i) {
      std::string begin = std::string("T_") + kNames[i] + "=";
      if (entry.compare(0, begin.size(), begin) != 0) continue;
      if (auto value = expected(kinds[i], entry.substr(begin.size()))) wanted[i] = *value;
    }
    if (entry.compare(0, 13, "T_STATS_FILE=") == 0 && entry.size() - 13 < hm::kMaxPath) file = entry.substr(13);
    pointers.push_back(entry.data());
  }
  pointers.push_back(nullptr);
  char** const real = environ;
  int messages = dup(STDERR_FILENO);
  dup2(nowhere, STDERR_FILENO);  // of what is not understood
  environ = pointers.data();
  const char* const others[] = {"OTHER_", nullptr};
  const hm::FileRow files[] = {{"STATS_FILE", table.file}};
  hm::OptionTable options = {.prefix = "T_", .rows = rows, .count = kKinds, .files = files, .others = others};
  hm::read_options(options);
  hm::print_options(options, nowhere);
  environ = real;
  dup2(messages, STDERR_FILENO);
  close(messages);
  for (size_t i = 0; i < kKinds; ++i) fuzz::expect(table.values[i] == wanted[i], kNames[i]);
  fuzz::expect(file == table.file, "STATS_FILE is another");
  fuzz::expect(table.before == kGuard && table.after == kGuard && table.file_before == 'x' && table.file_after == 'x',
               "something else was changed");
  return 0;
}
