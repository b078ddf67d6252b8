#include "base/report.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/system_call.h"

namespace hm {

FdWriter& FdWriter::put(char c) noexcept {
  if (used_ == buffer_.size()) flush();
  buffer_[used_++] = c;
  return *this;
}

FdWriter& FdWriter::operator<<(const char* text) noexcept {
  for (; *text != '\0'; ++text) put(*text);
  return *this;
}

FdWriter& FdWriter::operator<<(uint64_t number) noexcept { return padded(number, 0); }

FdWriter& FdWriter::padded(uint64_t number, size_t width) noexcept {
  char digits[20];
  size_t n = 0;
  do digits[n++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  for (size_t i = n; i < width; ++i) put(' ');
  while (n > 0) put(digits[--n]);
  return *this;
}

FdWriter& FdWriter::operator<<(const void* pointer) noexcept {
  *this << "0x";
  int shift = 60;
  while (shift > 0 && (address_of(pointer) >> shift) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) put("0123456789abcdef"[(address_of(pointer) >> shift) & 15]);
  return *this;
}

// Not by libc's write, which is a cancellation point.
void FdWriter::flush() noexcept {
  for (size_t done = 0; done < used_ && error_ == 0;) {
    long n = system_call(SYS_write, fd_, system_call_argument(&buffer_[done]), static_cast<long>(used_ - done));
    if (n > 0) done += static_cast<size_t>(n);
    else if (n != -EINTR) error_ = n == 0 ? EIO : static_cast<int>(-n);
  }
  used_ = 0;
}

void die_on_misuse(const char* function, const void* pointer, const char* reason,
                   void (*say_more)(const void*) noexcept) noexcept {
  { FdWriter(STDERR_FILENO) << kLibraryName << ": " << function << "(" << pointer << "): " << reason << "\n"; }
  if (say_more != nullptr) say_more(pointer);
  abort();
}

// Who defines _GLIBCXX_ASSERTIONS, as some distributions and Meson's debug builds do, has headers that call this where an index is
// out of range.  It is in libstdc++, which the library does without; weak, for programs that have both.  In one that is linked with
// the archive the program's own assertions come here, too: so the line is libstdc++'s, and does not begin with our name.
extern "C" [[noreturn, gnu::weak]] HM_COLD void hm_assertion_fails(const char*, int, const char*, const char*) noexcept
    __asm__("_ZSt21__glibcxx_assert_failPKciS0_S0_");

void hm_assertion_fails(const char* file, int line, const char* function, const char* condition) noexcept {
  {
    FdWriter(STDERR_FILENO) << file << ":" << static_cast<uint64_t>(line) << ": " << function << ": Assertion '" << condition
                            << "' failed.\n";
  }
  abort();
}

}  // namespace hm
