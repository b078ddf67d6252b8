#include "pages/options.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/option_parser.h"
#include "support.h"

using namespace hm;

namespace {
size_t size_from(const char* text) {
  size_t out = 0;
  EXPECT_TRUE(parse_size(text, out)) << text;
  return out;
}
bool refuses(const char* text) {
  size_t out = 0;
  return !parse_size(text, out);
}
size_t thousandths_from(const char* text) {
  size_t out = 0;
  EXPECT_TRUE(parse_thousandths(text, out)) << text;
  return out;
}
// A table of its own, as the baselines have.  Reads two variables in a child process and ends it.
[[noreturn]] void read_table(const char* name, const char* value, size_t number, size_t fraction, size_t bytes) {
  size_t n = 1, f = 2, b = 3;
  const OptionRow rows[] = {
      {"NUMBER", OptionKind::kNumber, &n}, {"FRACTION", OptionKind::kThousandths, &f}, {"BYTES", OptionKind::kSize, &b}};
  setenv("TABLE_BYTES", "4K", 1);
  setenv(name, value, 1);
  read_options({.prefix = "TABLE_", .rows = rows, .count = 3, .stats_file = nullptr});
  _exit(n == number && f == fraction && b == bytes ? 0 : 1);
}
// Reads one variable in a child process and ends it; 0 if `holds` afterwards.
template <class Holds>
[[noreturn]] void read_with(const char* name, const char* value, Holds holds) {
  setenv(name, value, 1);
  read_options();
  _exit(holds() ? 0 : 1);
}
auto succeeded = testing::ExitedWithCode(0);
}  // namespace

TEST(Options, SizesTakeUnits) {
  EXPECT_EQ(size_from("0"), 0u);
  EXPECT_EQ(size_from("4096"), 4096u);
  EXPECT_EQ(size_from("64K"), 64u << 10);
  EXPECT_EQ(size_from("64k"), 64u << 10);
  EXPECT_EQ(size_from("3M"), 3u << 20);
  EXPECT_EQ(size_from("2G"), size_t{2} << 30);
  EXPECT_EQ(size_from("1gb"), size_t{1} << 30);
  EXPECT_EQ(size_from("18446744073709551615"), SIZE_MAX);
}

TEST(Options, BadSizesAreRefused) {
  for (const char* text : {"", " 1", "-1", "K", "1Q", "1KK", "1K ", "0x10", "1.5M", "18446744073709551616",
                           "99999999999999999999", "17179869184G"})
    EXPECT_TRUE(refuses(text)) << text;
}

TEST(Options, ThousandthsAreDecimalsOrFractions) {
  EXPECT_EQ(thousandths_from("0"), 0u);
  EXPECT_EQ(thousandths_from("1"), 1000u);
  EXPECT_EQ(thousandths_from("1.2"), 1200u);
  EXPECT_EQ(thousandths_from("6/5"), 1200u);
  EXPECT_EQ(thousandths_from("0.25"), 250u);
  EXPECT_EQ(thousandths_from("1/4"), 250u);
  EXPECT_EQ(thousandths_from("0.125"), 125u);
  EXPECT_EQ(thousandths_from("1/8"), 125u);
  EXPECT_EQ(thousandths_from("2/3"), 666u);
  EXPECT_EQ(thousandths_from("0.0009"), 0u) << "the fourth digit is no thousandth";
  EXPECT_EQ(thousandths_from("1.9999"), 1999u);
  EXPECT_EQ(thousandths_from("12.034"), 12034u);
  EXPECT_EQ(thousandths_from("18446744073709550.999"), 18446744073709550999u);
}

TEST(Options, BadThousandthsAreRefused) {
  size_t out = 0;
  for (const char* text : {"", ".5", "-1", "1,2", "1.2x", "1/0", "1/", "1/2/3", "1/2.5", "a", " 1", "1.2.3", "1 ",
                           "18446744073709551.999", "18446744073709551615", "99999999999999999999"})
    EXPECT_FALSE(parse_thousandths(text, out)) << text;
}

TEST(Options, ATableIsReadByItsPrefix) {
  EXPECT_EXIT(read_table("TABLE_NUMBER", "17", 17, 2, 4096), succeeded, "^$");
  EXPECT_EXIT(read_table("TABLE_FRACTION", "1/4", 1, 250, 4096), succeeded, "^$");
  EXPECT_EXIT(read_table("TABLE_BYTES", "64K", 1, 2, 65536), succeeded, "^$");
  EXPECT_EXIT(read_table("HMALLOC_NUMBER", "17", 1, 2, 4096), succeeded, "^$");
  EXPECT_EXIT(read_table("TABLENUMBER", "17", 1, 2, 4096), succeeded, "^$");
}

TEST(Options, ATablesBadValuesAreNamedWithItsPrefix) {
  EXPECT_EXIT(read_table("TABLE_FRACTION", "1/0", 1, 2, 4096), succeeded,
              "^hmalloc: TABLE_FRACTION=1/0 is not understood; ignored\n$");
  EXPECT_EXIT(read_table("TABLE_NUMBER", "4K", 1, 2, 4096), succeeded,
              "^hmalloc: TABLE_NUMBER=4K is not understood; ignored\n$");
  EXPECT_EXIT(read_table("TABLE_OTHER", "1", 1, 2, 4096), succeeded, "^hmalloc: unknown option TABLE_OTHER; ignored\n$");
}

TEST(Options, ATableNeedsNoStatsFile) {
  EXPECT_EXIT(read_table("TABLE_STATS_FILE", "/tmp/x", 1, 2, 4096), succeeded, "^$") << "somebody else reads it";
  size_t number = 5;
  const OptionRow row{"NUMBER", OptionKind::kNumber, &number};
  EXPECT_EXIT((print_options({.prefix = "TABLE_", .rows = &row, .count = 1, .stats_file = nullptr}, 2), _exit(0)), succeeded,
              "^hmalloc: options NUMBER=5\n$");
}

TEST(Options, AStatsFileIsCopied) {
  static char file[kMaxPath];
  EXPECT_EXIT(
      {
        setenv("TABLE_STATS_FILE", "/tmp/x", 1);
        read_options({.prefix = "TABLE_", .rows = nullptr, .count = 0, .stats_file = file});
        _exit(strcmp(file, "/tmp/x"));
      },
      succeeded, "^$");
  EXPECT_EXIT(
      {
        setenv("TABLE_STATS_FILE", std::string(kMaxPath, 'x').c_str(), 1);
        read_options({.prefix = "TABLE_", .rows = nullptr, .count = 0, .stats_file = file});
        _exit(file[0]);
      },
      succeeded, "^hmalloc: TABLE_STATS_FILE is too long; ignored\n$");
}

TEST(Options, AValueIsTaken) {
  EXPECT_EXIT(read_with("HMALLOC_CACHE_BYTES", "3M", [] { return options.cache_bytes == 3 * kMiB; }), succeeded, "^$");
  EXPECT_EXIT(read_with("HMALLOC_DECAY_MS", "250", [] { return options.decay_ms == 250; }), succeeded, "^$");
  EXPECT_EXIT(read_with("HMALLOC_SHOW_STATS", "json", [] { return options.show_stats == 2; }), succeeded, "^$");
  EXPECT_EXIT(read_with("HMALLOC_VERBOSE", "yes", [] { return options.verbose == 1; }), succeeded, "^$");
}

TEST(Options, ABadValueIsNamedAndIgnored) {
  size_t before = options.decay_ms;
  EXPECT_EXIT(read_with("HMALLOC_DECAY_MS", "soon", [=] { return options.decay_ms == before; }), succeeded,
              "^hmalloc: HMALLOC_DECAY_MS=soon is not understood; ignored\n$");
}

TEST(Options, AnUnknownOptionIsNamedAndIgnored) {
  EXPECT_EXIT(read_with("HMALLOC_NONSENSE", "1", [] { return true; }), succeeded,
              "^hmalloc: unknown option HMALLOC_NONSENSE; ignored\n$");
  // A prefix or an extension of a known name is not that name.
  EXPECT_EXIT(read_with("HMALLOC_DECAY", "1", [] { return options.decay_ms == 500; }), succeeded, "HMALLOC_DECAY;");
  EXPECT_EXIT(read_with("HMALLOC_DECAY_MSX", "1", [] { return options.decay_ms == 500; }), succeeded, "_MSX;");
}

TEST(Options, AnotherLibrarysAreItsOwn) {
  EXPECT_EXIT(read_with("HMALLOC_PAPER_STATS_FILE", "x", [] { return true; }), succeeded, "^$");
}

TEST(Options, CacheBlocksStayWithinWhatAHeapHasRoomFor) {
  EXPECT_EXIT(read_with("HMALLOC_CACHE_BLOCKS", "0", [] { return options.cache_blocks == 1; }), succeeded, "^$");
  EXPECT_EXIT(read_with("HMALLOC_CACHE_BLOCKS", "5000", [] { return options.cache_blocks == 1023; }), succeeded, "^$");
}

TEST(Options, VerboseNamesEveryOption) {
  EXPECT_EXIT((print_options(2), _exit(0)), succeeded,
              "^hmalloc: options VERBOSE=0 .*DECAY_MS=500 .*CACHE_BYTES=5242880 .*CACHE_BLOCKS=1023 .*\n$");
}
