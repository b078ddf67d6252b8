#include "base/report.h"

#include <cerrno>
#include <csignal>

#include "support.h"

using namespace hm;

namespace {

std::string written(const std::function<void(FdWriter&)>& write) {
  testing::internal::CaptureStderr();
  {
    FdWriter text(2);
    write(text);
  }
  return testing::internal::GetCapturedStderr();
}

}  // namespace

TEST(Report, NumbersAndPointers) {
  EXPECT_EQ(written([](FdWriter& t) { t << uint64_t{0} << " " << uint64_t{18446744073709551615u}; }),
            "0 18446744073709551615");
  for (auto [address, text] :
       {std::pair{uintptr_t{0x7f00dead0010}, "0x7f00dead0010"}, {0, "0x0"}, {~uintptr_t{0}, "0xffffffffffffffff"}})
    EXPECT_EQ(written([=](FdWriter& t) { t << reinterpret_cast<void*>(address); }), text);
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
