#include "base/option_parser.h"

#include <cstdlib>

#include "pages/options.h"
#include "support.h"

using namespace hm;

namespace {

auto succeeded = testing::ExitedWithCode(0);

// What one reading of a text is.
struct Reading {
  const char* text;
  size_t value;
};
// One variable of the environment, what must be so once it was read, and what is said of it; "": nothing.
struct Case {
  const char* name;
  std::string value;
  bool (*holds)();
  std::string said = "";
};

void expect_each(const std::vector<Case>& cases, void (*read)()) {
  for (const Case& each : cases) {
    auto child = [&] {
      setenv(each.name, each.value.c_str(), 1);
      read();
      _exit(each.holds() ? 0 : 1);
    };
    EXPECT_EXIT(child(), succeeded, each.said.empty() ? "^$" : "^hmalloc: " + each.said + "\n$")
        << each.name << "=" << each.value;
  }
}

// A table of its own, as the baselines have.
size_t number = 1, fraction = 2, bytes = 3;
char file[kMaxPath];
const FileRow kFiles[] = {{"STATS_FILE", file}};
const OptionRow kRows[] = {{"NUMBER", OptionKind::kNumber, &number},
                           {"FRACTION", OptionKind::kThousandths, &fraction},
                           {"BYTES", OptionKind::kSize, &bytes}};
void read_table() { read_options({.prefix = "TABLE_", .rows = kRows, .count = 3}); }
void read_table_with_file() { read_options({.prefix = "TABLE_", .rows = kRows, .count = 3, .files = kFiles}); }
bool as_before() { return number == 1 && fraction == 2 && bytes == 3 && file[0] == '\0'; }

bool always() { return true; }
bool decay_as_before() { return options.decay_ms == 500; }

}  // namespace

TEST(Options, SizesTakeUnits) {
  for (auto [text, value] : {Reading{"0", 0},
                             {"4096", 4096},
                             {"64K", 64 << 10},
                             {"64k", 64 << 10},
                             {"3M", 3 << 20},
                             {"2G", size_t{2} << 30},
                             {"1gb", size_t{1} << 30},
                             {"18446744073709551615", SIZE_MAX}}) {
    size_t out = value + 1;
    EXPECT_TRUE(parse_size(text, out)) << text;
    EXPECT_EQ(out, value) << text;
  }
  for (const char* text : {"", " 1", "-1", "K", "1Q", "1KK", "1K ", "0x10", "1.5M", "18446744073709551616",
                           "99999999999999999999", "17179869184G"}) {
    size_t out = 0;
    EXPECT_FALSE(parse_size(text, out)) << text;
  }
}

TEST(Options, TimesNameTheirUnit) {
  for (auto [text, value] : {Reading{"0", 0},
                             {"0s", 0},
                             {"1ms", 1},
                             {"250ms", 250},
                             {"10s", 10'000},
                             {"5m", 300'000},
                             {"2h", 7'200'000},
                             {"18446744073709551615ms", SIZE_MAX}}) {
    size_t out = value + 1;
    EXPECT_TRUE(parse_time(text, out)) << text;
    EXPECT_EQ(out, value) << text;
  }
  for (const char* text :
       {"", "10", "s", "-1s", "1.5s", "10 s", "10sec", "10S", "1d", "10s ", "1s1", "18446744073709552s"}) {
    size_t out = 0;
    EXPECT_FALSE(parse_time(text, out)) << text;
  }
}

TEST(Options, ALimitIsASizeWithDecimalsOrAShare) {
  for (auto [text, value] : {Reading{"0", 0},
                             {"64M", 64 << 20},
                             {"1.5G", size_t{3} << 29},
                             {"1.5", 1},
                             {"0.25KB", 256},
                             {"80%", kShare | 80'000},
                             {"12.5%", kShare | 12'500},
                             {"100%", kShare | 100'000}}) {
    size_t out = value + 1;
    EXPECT_TRUE(parse_limit(text, out)) << text;
    EXPECT_EQ(out, value) << text;
  }
  for (const char* text : {"", "%", "0%", "0.0001%", "101%", "100.1%", "80%%", "80 %", "1.5Q", ".5G", "-1",
                           "9223372036854775808", "8589934592G", "8589934591.9999G1"}) {
    size_t out = 0;
    EXPECT_FALSE(parse_limit(text, out)) << text;
  }
}

TEST(Options, ThousandthsAreDecimalsOrFractions) {
  for (auto [text, value] : {Reading{"0", 0},
                             {"1", 1000},
                             {"1.2", 1200},
                             {"6/5", 1200},
                             {"0.25", 250},
                             {"1/4", 250},
                             {"0.125", 125},
                             {"1/8", 125},
                             {"2/3", 666},
                             {"0.0009", 0},
                             {"1.9999", 1999},
                             {"12.034", 12034},
                             {"18446744073709550.999", 18446744073709550999u}}) {
    size_t out = value + 1;
    EXPECT_TRUE(parse_thousandths(text, out)) << text;
    EXPECT_EQ(out, value) << text;
  }
  for (const char* text : {"", ".5", "-1", "1,2", "1.2x", "1/0", "1/", "1/2/3", "1/2.5", "a", " 1", "1.2.3", "1 ",
                           "18446744073709551.999", "18446744073709551615", "99999999999999999999"}) {
    size_t out = 0;
    EXPECT_FALSE(parse_thousandths(text, out)) << text;
  }
}

TEST(Options, ATableIsReadByItsPrefix) {
  expect_each({{"TABLE_NUMBER", "17", [] { return number == 17 && fraction == 2; }},
               {"TABLE_FRACTION", "1/4", [] { return fraction == 250; }},
               {"TABLE_BYTES", "64K", [] { return bytes == 65536; }},
               {"HMALLOC_NUMBER", "17", as_before},
               {"TABLENUMBER", "17", as_before},
               {"TABLE_FRACTION", "1/0", as_before, "TABLE_FRACTION=1/0 is not understood; ignored"},
               {"TABLE_NUMBER", "4K", as_before, "TABLE_NUMBER=4K is not understood; ignored"},
               {"TABLE_OTHER", "1", as_before, "unknown option TABLE_OTHER; ignored"},
               {"TABLE_STATS_FILE", "/tmp/x", as_before}},  // somebody else reads it
              read_table);
}

TEST(Options, ATablesStatsFileIsCopied) {
  expect_each({{"TABLE_STATS_FILE", "/tmp/x", [] { return strcmp(file, "/tmp/x") == 0; }},
               {"TABLE_STATS_FILE", std::string(kMaxPath, 'x'), as_before, "TABLE_STATS_FILE is too long; ignored"}},
              read_table_with_file);
}

TEST(Options, HmallocsOwnAreReadAndKeptInRange) {
  // Of a bad or unknown one a line is said; a prefix or an extension of a known name is not that name; and what belongs to
  // another library is its own.
  expect_each({{"HMALLOC_CACHE_BYTES", "3M", [] { return options.cache_bytes == 3 * kMiB; }},
               {"HMALLOC_DECAY_MS", "250", [] { return options.decay_ms == 250; }},
               {"HMALLOC_SHOW_STATS", "json", [] { return options.show_stats == 2; }},
               {"HMALLOC_SHOW_STATS", "openmetrics", [] { return options.show_stats == 3; }},
               {"HMALLOC_SHOW_STATS", "prometheus", [] { return options.show_stats == 0; },
                "HMALLOC_SHOW_STATS=prometheus is not understood; ignored"},
               {"HMALLOC_STATS_INTERVAL", "10s", [] { return options.stats_interval == 10'000; }},
               {"HMALLOC_STATS_INTERVAL", "10", [] { return options.stats_interval == 0; },
                "HMALLOC_STATS_INTERVAL=10 is not understood; ignored"},
               {"HMALLOC_STATS_TRIGGER", "/run/x", [] { return strcmp(options.stats_trigger, "/run/x") == 0; }},
               {"HMALLOC_STATS_TRIGGER", std::string(kMaxPath, 'x'), [] { return options.stats_trigger[0] == '\0'; },
                "HMALLOC_STATS_TRIGGER is too long; ignored"},
               {"HMALLOC_VERBOSE", "yes", [] { return options.verbose == 1; }},
               {"HMALLOC_CACHE_BLOCKS", "0", [] { return options.cache_blocks == 1; }},
               {"HMALLOC_CACHE_BLOCKS", "5000", [] { return options.cache_blocks == 1023; }},
               {"HMALLOC_DECAY_MS", "soon", decay_as_before, "HMALLOC_DECAY_MS=soon is not understood; ignored"},
               {"HMALLOC_NONSENSE", "1", always, "unknown option HMALLOC_NONSENSE; ignored"},
               {"HMALLOC_DECAY", "1", decay_as_before, "unknown option HMALLOC_DECAY; ignored"},
               {"HMALLOC_DECAY_MSX", "1", decay_as_before, "unknown option HMALLOC_DECAY_MSX; ignored"},
               {"HMALLOC_PAPER_STATS_FILE", "x", always}},
              read_options);
}

TEST(Options, ArePrintedWithTheirValues) {
  EXPECT_EXIT((print_options(2), _exit(0)), succeeded,
              "^hmalloc: options VERBOSE=0 .*DECAY_MS=500 .*CACHE_BYTES=5242880 .*CACHE_BLOCKS=1023 .*\n$");
  auto print_table = [] {
    print_options({.prefix = "TABLE_", .rows = kRows, .count = 1}, 2);
    _exit(0);
  };
  EXPECT_EXIT(print_table(), succeeded, "^hmalloc: options NUMBER=1\n$");
}
