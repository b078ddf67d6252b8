#include "base/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace hm {

Text& Text::put(char c) noexcept {
  if (used_ == buffer_.size()) flush();
  buffer_[used_++] = c;
  return *this;
}

Text& Text::operator<<(const char* text) noexcept {
  for (; *text != '\0'; ++text) put(*text);
  return *this;
}

Text& Text::operator<<(uint64_t number) noexcept { return padded(number, 0); }

Text& Text::padded(uint64_t number, size_t width) noexcept {
  char digits[20];
  size_t n = 0;
  do digits[n++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  for (size_t i = n; i < width; ++i) put(' ');
  while (n > 0) put(digits[--n]);
  return *this;
}

Text& Text::operator<<(const void* pointer) noexcept {
  *this << "0x";
  int shift = 60;
  while (shift > 0 && (address_of(pointer) >> shift) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) put("0123456789abcdef"[(address_of(pointer) >> shift) & 15]);
  return *this;
}

void Text::flush() noexcept {
  int saved = errno;
  for (size_t done = 0; done < used_;) {
    ssize_t n = write(fd_, &buffer_[done], used_ - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  used_ = 0;
  errno = saved;
}

void misuse(const char* function, const void* pointer, const char* reason) noexcept {
  { Text(STDERR_FILENO) << kLibraryName << ": " << function << "(" << pointer << "): " << reason << "\n"; }
  abort();
}

}  // namespace hm
