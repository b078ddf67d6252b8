// Text on a descriptor without allocating, and the end of a program that misused the allocator.
#pragma once
#include "base/sizes.h"

namespace hm {

// Whose messages they are.
#if defined(HM_LIBRARY_NAME)
inline constexpr const char* kLibraryName = HM_LIBRARY_NAME;
#else
inline constexpr const char* kLibraryName = "hmalloc";
#endif

// A line builder on the stack; writes itself out when full and at its end.
class Text {
 public:
  explicit Text(int fd) noexcept : fd_(fd) {}
  ~Text() { flush(); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  Text& operator<<(const char* text) noexcept;
  Text& operator<<(uint64_t number) noexcept;
  Text& operator<<(const void* pointer) noexcept;
  Text& put(char c) noexcept;
  Text& padded(uint64_t number, size_t width) noexcept;  // right-aligned
  void flush() noexcept;

 private:
  int fd_;
  size_t used_ = 0;
  char buffer_[512];
};

// "hmalloc: free(0x7f..): double free", then abort.
[[noreturn]] HM_COLD void misuse(const char* function, const void* pointer, const char* reason) noexcept;

}  // namespace hm
