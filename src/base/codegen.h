// What fast paths tell the compiler.
#pragma once

// A variable of the library that is found without its global offset table.  x86-64 adds an entry of that table in the
// same instruction that reads it, and would need one more without it.
#if defined(__x86_64__)
#define HM_HIDDEN
#else
#define HM_HIDDEN [[gnu::visibility("hidden")]]
#endif

namespace hm {

// A hint to the register allocator: the value is about to be returned.
template <class T>
[[gnu::always_inline]] inline T pin_to_return_register(T value) {
#if defined(__x86_64__)
  asm("" : "+a"(value));
#endif
  return value;
}

// The value, with its derivation hidden from the optimiser, which would otherwise do a shift and compare twice.
template <class T>
[[gnu::always_inline]] inline T hide_from_optimizer(T value) {
  asm("" : "+r"(value));
  return value;
}

// The compiler moves no access to memory from one side of it to the other.
[[gnu::always_inline]] inline void keep_apart() { asm volatile("" : : : "memory"); }

}  // namespace hm
