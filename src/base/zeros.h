// Memory that must be all zero.
#pragma once
#include <cstring>

#include "base/sizes.h"

namespace hm {

// Both ends are multiples of eight.
inline bool is_all_zero(const void* from, size_t bytes) noexcept {
  using Word [[gnu::may_alias]] = uint64_t;
  using Pair [[gnu::vector_size(16)]] = uint64_t;
  auto* at = static_cast<const char*>(from);
  auto pair = [&](size_t i) {
    Pair value;
    memcpy(&value, at + i * sizeof value, sizeof value);
    return value;
  };
  for (; bytes >= kLine; bytes -= kLine, at += kLine) {  // without a branch within it
    Pair any = (pair(0) | pair(1)) | (pair(2) | pair(3));
    if ((any[0] | any[1]) != 0) return false;
  }
  uint64_t any = 0;
  for (auto* word = reinterpret_cast<const Word*>(at); bytes > 0; bytes -= sizeof(Word)) any |= *word++;
  return any == 0;
}

// Null: there is none.
inline const char* first_not_zero(const char* from, size_t bytes) noexcept {
  for (size_t i = 0; i < bytes; ++i)
    if (from[i] != 0) return from + i;
  return nullptr;
}

// Before a page is read that may never have been written: the system would map its page of zeros first, and a page for the
// write after that.  Elsewhere than on x86-64 it does just that.
inline void fault_in_for_writing([[maybe_unused]] void* from, [[maybe_unused]] size_t bytes) noexcept {
#if defined(__x86_64__)
  constexpr size_t kPage = 4 * kKiB;
  uintptr_t end = address_of(from) + bytes;
  for (uintptr_t at = address_of(from); at < end; at = align_down(at, kPage) + kPage)
    asm volatile("orb $0, %0" : "+m"(*reinterpret_cast<char*>(at)));
#endif
}

}  // namespace hm
