// Which thread called malloc or free, and from where: what is told of a block when the program misuses it.
#pragma once
#include <span>

#include "profile/stack_taker.h"

namespace hm {

struct CallTrace {
  static constexpr size_t kFrames = 24;
  uint32_t thread = 0, count = 0;
  uintptr_t frames[kFrames];  // return addresses, the innermost first: of the call itself

  // The calling thread's, by a call from `caller`.
  void take_allocation(const void* caller) noexcept;
  void take_free(const void* caller) noexcept;
  void keep(std::span<uintptr_t> all, uint32_t thread_id) noexcept;  // the first of them
};

// How many of the frames lie inside the allocator, which was called from `caller`; 0 if it is not among them.
size_t frames_inside(std::span<const uintptr_t> all, const void* caller) noexcept;

// "  allocated by thread 12, from", and the frames with their files, on descriptor 2.  For any thread, also in a signal handler;
// allocates nothing.
void print(const char* what, const CallTrace& trace) noexcept;

}  // namespace hm
