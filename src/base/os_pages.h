// The one place that asks the system for memory.  Every call preserves errno and reports failure by its result; the
// entry points set ENOMEM.  In the fault-injection build the n-th call fails, for any n (HM_FAIL_NTH).
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm::os {

inline constexpr size_t kMaxGuards = 16384;

size_t page_size() noexcept;  // read at run time: 4, 16 or 64 KB

enum class Access : uint8_t {
  kReadWrite,
  kTagged,  // the same, with memory tags where there are any
  kNone,    // it is to be opened
};

// Zeroed memory, readable and writable if nothing else is asked for, that the address map covers.  Its start, or the address
// `lead` bytes behind it, is a multiple of `alignment` (a power of two, at least a page).  Null on failure: near a limit it
// needs no more than `bytes`.
void* map(size_t bytes, size_t alignment, size_t lead = 0, Access access = Access::kReadWrite) noexcept;
// The same at a random place, one of those that this process uses: all lie in 64 GB, so that tables of addresses stay small.
// At any place if none of a few is free.  For a lead of 0.
void* map_somewhere(size_t bytes, size_t alignment, size_t lead = 0, Access access = Access::kReadWrite) noexcept;
// Maps at this place, unless something else is there.
enum class Mapped : uint8_t { kYes, kTaken, kRefused };
Mapped map_there(void* place, size_t bytes, Access access = Access::kReadWrite) noexcept;
bool unmap(void* base, size_t bytes) noexcept;
// The pages read as zero from now on and use no memory until touched.  False: they are unchanged.
bool purge(void* base, size_t bytes) noexcept;
// Grows or shrinks a mapping in place.
bool resize(void* base, size_t old_bytes, size_t new_bytes) noexcept;
// Moves a mapping's pages onto another mapping of new_bytes, without copying them.
bool move(void* from, size_t old_bytes, void* to, size_t new_bytes) noexcept;
// Makes whole pages inaccessible, so that overflows do not reach what lies behind them.  False: they are unchanged.
// Each may cost the process two of its mappings (vm.max_map_count), so there are at most kMaxGuards at a time;
// `unguarded` reports that so many have been unmapped.
bool guard(void* base, size_t bytes) noexcept;
// Makes pages of an inaccessible mapping accessible: those between so many guards, which count as above; or all of it.
bool open_between_guards(void* base, size_t bytes, size_t guards) noexcept;
bool open(void* base, size_t bytes) noexcept;
// Makes pages inaccessible that do not count as guards: next to one it costs no mapping.
bool seal(void* base, size_t bytes) noexcept;
void unguarded(size_t guards) noexcept;
// Like map, but never unmapped, and with a guard on both sides if possible.
void* map_guarded(size_t bytes) noexcept;
// Bytes of it that are resident; 0 if the system does not tell.
size_t resident(void* base, size_t bytes) noexcept;
// Makes it read as zero in every child of a fork.  False: the system cannot do that.
bool empty_in_children(void* base, size_t bytes) noexcept;
// Asks for huge pages in place of whole pages of it, or for small ones; only a hint.
void prefer_huge_pages(void* base, size_t bytes, bool huge = true) noexcept;

extern std::atomic<uint64_t> call_count;               // relaxed: for statistics and fault injection
uint64_t calls() noexcept;                             // number of calls so far
void fail_after(uint64_t n, uint64_t count) noexcept;  // fault-injection build: after n more calls, `count` fail

}  // namespace hm::os
