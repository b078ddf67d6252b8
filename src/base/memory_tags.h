// Memory tags of AArch64 (MTE), for the hardened library: every 16 bytes of memory have a tag of four bits, a pointer has one in
// its bits 56 to 59, and an access by a pointer with another tag than the memory's is a fault.  Off unless they are asked for
// (HMALLOC_TAGS) and the processor has them; elsewhere nothing of this is compiled.
//
// Tag 0 is that of all memory but small blocks that the program has, and of all pointers but those to them.  Whoever has the block
// may change its tags.
#pragma once
#include "base/frozen.h"

namespace hm {

#if defined(__aarch64__) && defined(HM_HARDENED)

class MemoryTags {
 public:
  // At load, by a process's only thread: those that it starts inherit what this asks the system for.  False: there are none.
  bool start() noexcept;
  bool are_on() const noexcept { return on_; }

  void* strip(const void* pointer) const noexcept {
    return reinterpret_cast<void*>(address_of(pointer) & ~(on_ ? kMask : 0));
  }
  // Whether the pointer has the tag of the memory that it leads to.
  bool fit(const void* pointer) const noexcept { return !on_ || tag_of(pointer) == tag_at(strip(pointer)); }
  // So many bytes of a block get a tag at random, but not that of its neighbours, if there are any.  Returns the pointer to them.
  void* give(void* block, size_t bytes, const void* in_front, const void* behind) const noexcept;
  // So many bytes now have the pointer's tag, and the others, of those that had it before, have none.
  void resize(void* pointer, size_t before, size_t bytes) const noexcept {
    if (!on_) return;
    set(static_cast<char*>(strip(pointer)), 0, before);
    set(static_cast<char*>(strip(pointer)), tag_of(pointer), bytes);
  }
  void take(void* block, size_t bytes) const noexcept {
    if (on_) set(static_cast<char*>(block), 0, bytes);
  }

 private:
  static constexpr int kShift = 56;
  static constexpr uintptr_t kMask = uintptr_t{15} << kShift;
  static unsigned tag_of(const void* pointer) noexcept { return address_of(pointer) >> kShift & 15; }
  static unsigned tag_at(const void* granule) noexcept;
  static void set(char* block, unsigned tag, size_t bytes) noexcept;

  bool on_ = false;
};
extern Frozen<MemoryTags> memory_tags;

// As long as it lives, this thread's accesses are not compared with tags: for what lies in and around the program's blocks.  Of two,
// one within the other, the first to end ends both.
class AnyTag {
 public:
  AnyTag() noexcept { allow(true); }
  ~AnyTag() { allow(false); }
  AnyTag(const AnyTag&) = delete;
  AnyTag& operator=(const AnyTag&) = delete;

 private:
  // `msr tco, #1` and `msr tco, #0`, which older assemblers do not know, nor older processors.
  static void allow(bool any) noexcept {
    if (!memory_tags.are_on()) return;
    if (any) asm volatile(".inst 0xd503419f" ::: "memory");
    else asm volatile(".inst 0xd503409f" ::: "memory");
  }
};

#else

struct MemoryTags {
  static constexpr bool start() noexcept { return false; }
  static constexpr bool are_on() noexcept { return false; }
  static void* strip(const void* pointer) noexcept { return const_cast<void*>(pointer); }
  static constexpr bool fit(const void*) noexcept { return true; }
  static void* give(void* block, size_t, const void*, const void*) noexcept { return block; }
  static void resize(void*, size_t, size_t) noexcept {}
  static void take(void*, size_t) noexcept {}
  static void freeze() noexcept {}
};
inline constexpr MemoryTags memory_tags;
struct AnyTag {
  AnyTag() noexcept {}  // a variable of this type is used
};

#endif

int protection_for_tags() noexcept;  // to be added to that of memory whose tags can be set; 0 where there are none

}  // namespace hm
