#include "base/report.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "support.h"

using namespace hm;

namespace {
template <class Write>
std::string written(Write write) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  {
    FdWriter text(ends[1]);
    write(text);
  }
  close(ends[1]);
  std::string all;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  return all;
}
}  // namespace

TEST(Report, NumbersAndPointers) {
  EXPECT_EQ(written([](FdWriter& t) { t << uint64_t{0} << " " << uint64_t{18446744073709551615u}; }),
            "0 18446744073709551615");
  EXPECT_EQ(written([](FdWriter& t) { t << reinterpret_cast<void*>(0x7f00dead0010); }), "0x7f00dead0010");
  EXPECT_EQ(written([](FdWriter& t) { t << static_cast<const void*>(nullptr); }), "0x0");
  EXPECT_EQ(written([](FdWriter& t) { t << reinterpret_cast<void*>(~uintptr_t{0}); }), "0xffffffffffffffff");
  EXPECT_EQ(written([](FdWriter& t) { t.padded(42, 6).padded(1234567, 3); }), "    421234567");
}

TEST(Report, MoreThanTheBufferIsWrittenWhole) {
  std::string expected(3000, 'x');
  EXPECT_EQ(written([&](FdWriter& t) { t << expected.c_str(); }), expected);
}

TEST(Report, ErrnoStays) {
  errno = 4242;
  { FdWriter(-1) << "nobody reads this"; }
  EXPECT_EQ(errno, 4242);
}

TEST(Report, MisuseIsOneLineThenAbort) {
  EXPECT_EXIT(die_on_misuse("free", reinterpret_cast<void*>(0x1230), "double free"), testing::KilledBySignal(SIGABRT),
              "^hmalloc: free\\(0x1230\\): double free" HM_LAST_LINE);
}
