// System calls without libc, whose wrappers may be replaced by other libraries, which allocate, and are cancellation
// points in part.  Neither must happen inside malloc.  errno is left alone.
//
// For any thread in any context: no lock, no allocation, safe in signal handlers.
#pragma once
#include "base/sizes.h"

namespace hm {

// Returns the kernel's answer: not negative, or a negated error number.  Pointers are passed as integers.
#if defined(HM_LIBC_CALLS)  // the core under hm_ names, for sanitizers and tests; it is nobody's malloc
long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept;
#else
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#elif defined(__riscv) && __riscv_xlen == 64
  register long a7 asm("a7") = number;
  register long a0 asm("a0") = a;
  register long a1 asm("a1") = b;
  register long a2 asm("a2") = c;
  register long a3 asm("a3") = d;
  register long a4 asm("a4") = e;
  register long a5 asm("a5") = f;
  asm volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
  return a0;
#else
#error "no system call for this processor"
#endif
}
#endif

inline long system_call_argument(const void* pointer) noexcept { return static_cast<long>(address_of(pointer)); }

}  // namespace hm
