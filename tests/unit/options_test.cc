#include "hmalloc/options.h"

#include <unistd.h>

#include <cstdlib>

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

TEST(Options, CacheBlocksStayWithinWhatAHeapHasRoomFor) {
  EXPECT_EXIT(read_with("HMALLOC_CACHE_BLOCKS", "0", [] { return options.cache_blocks == 1; }), succeeded, "^$");
  EXPECT_EXIT(read_with("HMALLOC_CACHE_BLOCKS", "5000", [] { return options.cache_blocks == 1023; }), succeeded, "^$");
}

TEST(Options, VerboseNamesEveryOption) {
  EXPECT_EXIT((print_options(2), _exit(0)), succeeded,
              "^hmalloc: options VERBOSE=0 .*DECAY_MS=500 .*CACHE_BYTES=4194304 .*CACHE_BLOCKS=1023 .*\n$");
}
