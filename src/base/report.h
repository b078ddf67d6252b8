// Writing text to a descriptor without allocating, and ending a program that misused the allocator.
#pragma once
#include <span>

#include "base/sizes.h"

namespace hm {

// The name that messages begin with.
#if defined(HM_LIBRARY_NAME)
inline constexpr const char* kLibraryName = HM_LIBRARY_NAME;
#else
inline constexpr const char* kLibraryName = "hmalloc";
#endif

// Collects text and writes it when its buffer is full and when it is destroyed: what fits is one write(2), so that
// lines of several processes do not mix.
class FdWriter {
 public:
  explicit FdWriter(int fd) noexcept : FdWriter(fd, line_) {}
  FdWriter(int fd, std::span<char> buffer) noexcept : fd_(fd), buffer_(buffer) {}
  ~FdWriter() { flush(); }
  FdWriter(const FdWriter&) = delete;
  FdWriter& operator=(const FdWriter&) = delete;

  FdWriter& operator<<(const char* text) noexcept;
  FdWriter& operator<<(uint64_t number) noexcept;
  FdWriter& operator<<(const void* pointer) noexcept;
  FdWriter& put(char c) noexcept;
  FdWriter& padded(uint64_t number, size_t width) noexcept;  // right-aligned
  void flush() noexcept;
  int error() const noexcept { return error_; }  // of the first flush that failed; what came later was not written either

 private:
  int fd_, error_ = 0;
  std::span<char> buffer_;
  size_t used_ = 0;
  char line_[512];
};

// "hmalloc: free(0x7f..): double free", then what say_more writes to descriptor 2 about the pointer, then abort.
[[noreturn]] HM_COLD void die_on_misuse(const char* function, const void* pointer, const char* reason,
                                        void (*say_more)(const void* pointer) noexcept = nullptr) noexcept;

}  // namespace hm
