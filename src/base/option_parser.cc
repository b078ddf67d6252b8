#include "base/option_parser.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>

#include "base/report.h"

extern char** environ;

namespace hm {
namespace {

bool parse_number(const char*& text, size_t& out) noexcept {
  if (*text < '0' || *text > '9') return false;
  for (out = 0; *text >= '0' && *text <= '9'; ++text)
    if (__builtin_mul_overflow(out, size_t{10}, &out) || __builtin_add_overflow(out, static_cast<size_t>(*text - '0'), &out))
      return false;
  return true;
}

bool parse_flag(const char* text, size_t& out) noexcept {
  for (const char* yes : {"1", "yes", "on", "true"})
    if (strcmp(text, yes) == 0) return out = 1, true;
  for (const char* no : {"0", "no", "off", "false", ""})
    if (strcmp(text, no) == 0) return out = 0, true;
  return false;
}

bool parse_stats(const char* text, size_t& out) noexcept {
  if (strcmp(text, "json") == 0) return out = 2, true;
  if (strcmp(text, "openmetrics") == 0) return out = 3, true;
  return parse_flag(text, out);
}

bool parse(OptionKind kind, const char* text, size_t& out) noexcept {
  switch (kind) {
    case OptionKind::kFlag: return parse_flag(text, out);
    case OptionKind::kTime: return parse_time(text, out);
    case OptionKind::kStats: return parse_stats(text, out);
    case OptionKind::kNumber: return parse_number(text, out) && *text == '\0';
    case OptionKind::kSize: return parse_size(text, out);
    case OptionKind::kThousandths: return parse_thousandths(text, out);
    case OptionKind::kLimit: return parse_limit(text, out);
    case OptionKind::kProfile: return parse_profile(text, out);
  }
  return false;
}

bool is_of_others(const OptionTable& table, const char* name) noexcept {
  for (const char* const* each = table.others; each != nullptr && *each != nullptr; ++each)
    if (strncmp(name, *each, strlen(*each)) == 0) return true;
  return false;
}

bool is(const char* name, size_t length, const char* known) noexcept {
  return strlen(known) == length && strncmp(name, known, length) == 0;
}

// A copy: programs write over their environment.
void set_file(const OptionTable& table, const FileRow& row, const char* value) noexcept {
  if (strlen(value) < kMaxPath) memcpy(row.path, value, strlen(value) + 1);
  else FdWriter(STDERR_FILENO) << kLibraryName << ": " << table.prefix << row.name << " is too long; ignored\n";
}

void set(const OptionTable& table, const char* name, size_t length, const char* value) noexcept {
  for (const FileRow& row : table.files)
    if (is(name, length, row.name)) return set_file(table, row, value);
  if (is_of_others(table, name)) return;
  for (const OptionRow* row = table.rows; row != table.rows + table.count; ++row) {
    if (!is(name, length, row->name)) continue;
    size_t parsed = 0;
    if (parse(row->kind, value, parsed)) *row->value = parsed;
    else
      FdWriter(STDERR_FILENO) << kLibraryName << ": " << table.prefix << row->name << "=" << value
                              << " is not understood; ignored\n";
    return;
  }
  FdWriter text(STDERR_FILENO);
  text << kLibraryName << ": unknown option " << table.prefix;
  for (size_t i = 0; i < length; ++i) text.put(name[i]);
  text << "; ignored\n";
}

size_t take_unit(const char*& text) noexcept {
  size_t unit = 1;
  switch (*text) {
    case 'G':
    case 'g': unit *= kKiB; [[fallthrough]];
    case 'M':
    case 'm': unit *= kKiB; [[fallthrough]];
    case 'K':
    case 'k':
      unit *= kKiB;
      ++text;
      break;
    default: break;
  }
  if (unit > 1 && (*text == 'B' || *text == 'b')) ++text;
  return unit;
}

// In thousandths; what is smaller is dropped.
size_t take_decimals(const char*& text) noexcept {
  size_t out = 0, digit = 100;
  if (*text != '.') return 0;
  for (++text; *text >= '0' && *text <= '9'; ++text, digit /= 10) out += digit * static_cast<size_t>(*text - '0');
  return out;
}

}  // namespace

bool parse_size(const char* text, size_t& out) noexcept {
  if (!parse_number(text, out)) return false;
  size_t unit = take_unit(text);
  return *text == '\0' && !__builtin_mul_overflow(out, unit, &out);
}

// A number alone might be anything, unless it is 0.
bool parse_time(const char* text, size_t& out) noexcept {
  struct Unit {
    const char* name;
    size_t ms;
  };
  if (!parse_number(text, out)) return false;
  if (out == 0 && *text == '\0') return true;
  for (const Unit& unit : {Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000}, Unit{"h", 3'600'000}})
    if (strcmp(text, unit.name) == 0) return !__builtin_mul_overflow(out, unit.ms, &out);
  return false;
}

bool parse_limit(const char* text, size_t& out) noexcept {
  if (!parse_number(text, out)) return false;
  size_t thousandths = take_decimals(text);
  if (*text == '%') {
    if (text[1] != '\0' || out > 100) return false;
    out = out * 1000 + thousandths;
    return out > 0 && out <= 100'000 ? (out |= kShare, true) : false;
  }
  size_t unit = take_unit(text);
  return *text == '\0' && !__builtin_mul_overflow(out, unit, &out) && out < kShare &&
         !__builtin_add_overflow(out, thousandths * unit / 1000, &out) && out < kShare;
}

bool parse_profile(const char* text, size_t& out) noexcept {
  constexpr const char kRate[] = "heap:rate=";
  size_t rate = 0;
  if (strncmp(text, kRate, sizeof kRate - 1) == 0)
    return parse_size(text + sizeof kRate - 1, rate) && rate > 0 ? (out = rate, true) : false;
  if (strcmp(text, "heap") != 0 && !parse_flag(text, out)) return false;
  if (strcmp(text, "heap") == 0 || out != 0) out = kUsualRate;
  return true;
}

bool parse_thousandths(const char* text, size_t& out) noexcept {
  size_t whole = 0, below = 1;
  if (!parse_number(text, whole) || whole >= SIZE_MAX / 1000) return false;
  out = whole * 1000;
  if (*text == '/') {
    if (!parse_number(++text, below) || below == 0) return false;
    out /= below;
  } else {
    out += take_decimals(text);
  }
  return *text == '\0';
}

void read_options(const OptionTable& table) noexcept {
  if (environ == nullptr || getauxval(AT_SECURE) != 0) return;
  size_t length = strlen(table.prefix);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, table.prefix, length) != 0) continue;
    const char* name = *entry + length;
    const char* equals = strchr(name, '=');
    if (equals != nullptr) set(table, name, static_cast<size_t>(equals - name), equals + 1);
  }
}

void print_options(const OptionTable& table, int fd) noexcept {
  FdWriter text(fd);
  text << kLibraryName << ": options";
  for (const OptionRow* row = table.rows; row != table.rows + table.count; ++row)
    text << " " << row->name << "=" << uint64_t{*row->value};
  for (const FileRow& row : table.files)
    if (row.path[0] != '\0') text << " " << row.name << "=" << row.path;
  text << "\n";
}

}  // namespace hm
