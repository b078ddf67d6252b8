#include "base/options.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>

#include "base/report.h"

extern char** environ;

namespace hm {

constinit Options options;

namespace {

enum Kind : uint8_t { kFlag, kNumber, kSize, kStats };

struct Row {
  const char* name;
  Kind kind;
  size_t Options::* field;
};
constexpr Row kRows[] = {
#define HM_OPTION_ROW(field, name, kind, value, help) {name, kind, &Options::field},
    HM_OPTIONS(HM_OPTION_ROW)
#undef HM_OPTION_ROW
};

bool parse_number(const char*& text, size_t& out) noexcept {
  if (*text < '0' || *text > '9') return false;
  for (out = 0; *text >= '0' && *text <= '9'; ++text)
    if (__builtin_mul_overflow(out, size_t{10}, &out) ||
        __builtin_add_overflow(out, static_cast<size_t>(*text - '0'), &out))
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

bool parse(Kind kind, const char* text, size_t& out) noexcept {
  switch (kind) {
    case kFlag: return parse_flag(text, out);
    case kStats: return strcmp(text, "json") == 0 ? (out = 2, true) : parse_flag(text, out);
    case kNumber: return parse_number(text, out) && *text == '\0';
    case kSize: return parse_size(text, out);
  }
  return false;
}

void set(const char* name, size_t length, const char* value) noexcept {
  if (length == strlen("STATS_FILE") && strncmp(name, "STATS_FILE", length) == 0) {
    // A copy: programs write over their environment.
    if (strlen(value) < sizeof options.stats_file) memcpy(options.stats_file, value, strlen(value) + 1);
    else Text(STDERR_FILENO) << "hmalloc: HMALLOC_STATS_FILE is too long; ignored\n";
    return;
  }
  for (const Row& row : kRows) {
    if (strlen(row.name) != length || strncmp(name, row.name, length) != 0) continue;
    size_t parsed = 0;
    if (parse(row.kind, value, parsed)) options.*row.field = parsed;
    else Text(STDERR_FILENO) << "hmalloc: HMALLOC_" << row.name << "=" << value << " is not understood; ignored\n";
    return;
  }
  Text text(STDERR_FILENO);
  text << "hmalloc: unknown option HMALLOC_";
  for (size_t i = 0; i < length; ++i) text.put(name[i]);
  text << "; ignored\n";
}

}  // namespace

bool parse_size(const char* text, size_t& out) noexcept {
  if (!parse_number(text, out)) return false;
  size_t unit = 1;
  switch (*text) {
    case 'G': case 'g': unit *= kKiB; [[fallthrough]];
    case 'M': case 'm': unit *= kKiB; [[fallthrough]];
    case 'K': case 'k': unit *= kKiB; ++text; break;
    default: break;
  }
  if (unit > 1 && (*text == 'B' || *text == 'b')) ++text;
  return *text == '\0' && !__builtin_mul_overflow(out, unit, &out);
}

void read_options() noexcept {
  if (environ == nullptr || getauxval(AT_SECURE) != 0) return;
  constexpr const char kPrefix[] = "HMALLOC_";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, kPrefix, strlen(kPrefix)) != 0) continue;
    const char* name = *entry + strlen(kPrefix);
    const char* equals = strchr(name, '=');
    if (equals != nullptr) set(name, static_cast<size_t>(equals - name), equals + 1);
  }
  if (options.cache_blocks < 1) options.cache_blocks = 1;
  if (options.cache_blocks > 1023) options.cache_blocks = 1023;
}

void print_options(int fd) noexcept {
  Text text(fd);
  text << "hmalloc: options";
  for (const Row& row : kRows) text << " " << row.name << "=" << uint64_t{options.*row.field};
  if (options.stats_file[0] != '\0') text << " STATS_FILE=" << options.stats_file;
  text << "\n";
}

}  // namespace hm
