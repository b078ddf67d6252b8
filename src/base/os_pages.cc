#include "base/os_pages.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/address_map.h"
#include "base/memory_tags.h"
#include "base/secret.h"
#include "base/system_call.h"

namespace hm::os {

alignas(kLine) constinit std::atomic<uint64_t> call_count{0};

namespace {

#if defined(HM_FAULTS)
std::atomic<uint64_t> fail_from{0}, fail_to{0};  // relaxed: calls from fail_from on fail, up to but excluding fail_to
#endif

// True when the fault-injection build wants this call to fail.
bool counted_failure() noexcept {
  uint64_t n = call_count.fetch_add(1, std::memory_order_relaxed) + 1;
#if defined(HM_FAULTS)
  static std::atomic<long> fail_nth{-1};
  long nth = fail_nth.load(std::memory_order_relaxed);
  if (nth < 0) {
    const char* text = getenv("HM_FAIL_NTH");
    nth = text ? strtol(text, nullptr, 10) : 0;
    fail_nth.store(nth, std::memory_order_relaxed);
  }
  if (n >= fail_from.load(std::memory_order_relaxed) && n < fail_to.load(std::memory_order_relaxed)) return true;
  return nth != 0 && n == static_cast<uint64_t>(nth);
#else
  (void)n;
  return false;
#endif
}

bool succeeds(long number, const void* base, size_t bytes, long c = 0, long d = 0, const void* e = nullptr) noexcept {
  if (counted_failure()) return false;
  long answer = system_call(number, system_call_argument(base), static_cast<long>(bytes), c, d, system_call_argument(e));
  return answer >= 0 || answer < -4095;  // an address, for mremap
}

void* map_at(const void* hint, size_t bytes, Access access) noexcept {
  if (counted_failure()) return nullptr;
  int allowed = access == Access::kNone ? PROT_NONE : PROT_READ | PROT_WRITE;
  if (access == Access::kTagged) allowed |= protection_for_tags();
  long base = system_call(SYS_mmap, system_call_argument(hint), static_cast<long>(bytes), allowed,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base < 0 && base >= -4095) return nullptr;
  if (HM_LIKELY(AddressMap::covers(static_cast<uintptr_t>(base), bytes))) return reinterpret_cast<void*>(base);
  system_call(SYS_munmap, base, static_cast<long>(bytes));  // a block there could never be freed
  return nullptr;
}

}  // namespace

size_t page_size() noexcept {
  static std::atomic<size_t> known{0};  // relaxed: all threads find the same
  size_t bytes = known.load(std::memory_order_relaxed);
  if (bytes == 0) {
    bytes = getauxval(AT_PAGESZ);
    known.store(bytes, std::memory_order_relaxed);
  }
  return bytes;
}

Mapped map_there(void* place, size_t bytes, Access access) noexcept {
  void* base = map_at(place, bytes, access);
  if (base == nullptr || base == place) return base == nullptr ? Mapped::kRefused : Mapped::kYes;
  unmap(base, bytes);
  return Mapped::kTaken;
}

namespace {

// All mappings are `bytes` long, and their starts, or the places `lead` bytes behind these, are aligned.
void* map_wide(size_t bytes, size_t alignment, size_t lead, Access access) noexcept {
  void* wide = map_at(nullptr, bytes + alignment, access);
  if (wide == nullptr) return nullptr;
  uintptr_t start = align_up(address_of(wide) + lead, alignment) - lead;
  size_t head = start - address_of(wide);
  if (head > 0) unmap(wide, head);
  if (alignment > head) unmap(reinterpret_cast<void*>(start + bytes), alignment - head);
  return reinterpret_cast<void*>(start);
}

// Where a limit leaves no room for the alignment: tries one place after another, from the system's own choice downwards.
void* map_exactly(uintptr_t from, size_t bytes, size_t alignment, size_t lead, Access access) noexcept {
  constexpr int kPlaces = 16;
  size_t step = alignment;
  for (int i = 0; i < kPlaces && from > step + lead + alignment; ++i, step *= 2) {
    void* place = reinterpret_cast<void*>(align_down(from + lead, alignment) - lead);
    Mapped mapped = map_there(place, bytes, access);
    if (mapped != Mapped::kTaken) return mapped == Mapped::kYes ? place : nullptr;
    from -= step;
  }
  return nullptr;
}

}  // namespace

// The system maps downwards, so the place just below the last aligned mapping is usually free: one call instead of three.
void* map(size_t bytes, size_t alignment, size_t lead, Access access) noexcept {
  static std::atomic<uintptr_t> last{0};  // relaxed: a hint
  bytes = align_up(bytes, page_size());
  if (alignment <= page_size()) return map_at(nullptr, bytes, access);
  uintptr_t below = last.load(std::memory_order_relaxed);
  uintptr_t hint = below > bytes + lead + alignment ? align_down(below - bytes + lead, alignment) - lead : 0;
  void* base = map_at(reinterpret_cast<void*>(hint), bytes, access);
  if (base == nullptr) return nullptr;
  if ((address_of(base) + lead) % alignment != 0) {
    unmap(base, bytes);
    uintptr_t chosen = address_of(base);
    base = map_wide(bytes, alignment, lead, access);
    if (base == nullptr) base = map_exactly(chosen, bytes, alignment, lead, access);
  }
  if (base != nullptr) last.store(address_of(base), std::memory_order_relaxed);
  return base;
}

void* map_somewhere(size_t bytes, size_t alignment, size_t lead, Access access) noexcept {
  constexpr uintptr_t kSpan = uintptr_t{64} * kKiB * kMiB;
  constexpr int kTries = 4;
  static std::atomic<uintptr_t> window{0};  // relaxed: one word, and nothing else depends on it
  uintptr_t from = window.load(std::memory_order_relaxed);
  if (from == 0) {
    constexpr uintptr_t kSpans = (uintptr_t{1} << (kAddressBits - 1)) / kSpan;  // not where stack and libraries are
    uintptr_t drawn = (1 + next_random() % (kSpans - 1)) * kSpan;
    if (window.compare_exchange_strong(from, drawn, std::memory_order_relaxed)) from = drawn;
  }
  bytes = align_up(bytes, page_size());
  for (int i = 0; i < kTries && bytes + alignment <= kSpan / 4; ++i) {
    uintptr_t place = align_up(from + next_random() % (kSpan - bytes - alignment), alignment);
    Mapped mapped = map_there(reinterpret_cast<void*>(place), bytes, access);
    if (mapped == Mapped::kYes) return reinterpret_cast<void*>(place);
    if (mapped == Mapped::kRefused) break;
  }
  return map(bytes, alignment, lead, access);
}

bool unmap(void* base, size_t bytes) noexcept { return succeeds(SYS_munmap, base, align_up(bytes, page_size())); }

bool purge(void* base, size_t bytes) noexcept {
  if ((address_of(base) | bytes) % page_size() != 0) return false;  // a slice of 32 KB where pages are 64 KB
  return succeeds(SYS_madvise, base, bytes, MADV_DONTNEED);
}

bool resize(void* base, size_t old_bytes, size_t new_bytes) noexcept {
  return AddressMap::covers(address_of(base), new_bytes) &&
         succeeds(SYS_mremap, base, old_bytes, static_cast<long>(new_bytes), 0);
}

bool move(void* from, size_t old_bytes, void* to, size_t new_bytes) noexcept {
  return succeeds(SYS_mremap, from, old_bytes, static_cast<long>(new_bytes), MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

bool empty_in_children(void* base, size_t bytes) noexcept {
  return system_call(SYS_madvise, system_call_argument(base), static_cast<long>(bytes), MADV_WIPEONFORK) == 0;
}

namespace {
std::atomic<size_t> guards{0};  // relaxed: a count; a race allows a few more than kMaxGuards, or fewer
}

bool guard(void* base, size_t bytes) noexcept {
  if (guards.load(std::memory_order_relaxed) >= kMaxGuards) return false;
  bool made = succeeds(SYS_mprotect, base, bytes, PROT_NONE);
  if (made) guards.fetch_add(1, std::memory_order_relaxed);
  return made;
}

bool open_between_guards(void* base, size_t bytes, size_t made) noexcept {
  if (guards.load(std::memory_order_relaxed) + made > kMaxGuards || !open(base, bytes)) return false;
  guards.fetch_add(made, std::memory_order_relaxed);
  return true;
}

bool open(void* base, size_t bytes) noexcept { return succeeds(SYS_mprotect, base, bytes, PROT_READ | PROT_WRITE); }

bool seal(void* base, size_t bytes) noexcept { return succeeds(SYS_mprotect, base, bytes, PROT_NONE); }

void unguarded(size_t n) noexcept { guards.fetch_sub(n, std::memory_order_relaxed); }

void* map_guarded(size_t bytes) noexcept {
  bytes = align_up(bytes, page_size());
  auto* base = static_cast<char*>(map(bytes + 2 * page_size(), page_size()));
  if (base == nullptr) return nullptr;
  guard(base, page_size());
  guard(base + page_size() + bytes, page_size());
  return base + page_size();
}

size_t resident(void* base, size_t bytes) noexcept {
  size_t pages = bytes / page_size(), found = 0;
  unsigned char in_memory[512];
  for (size_t at = 0; at < pages;) {
    size_t n = std::min(pages - at, sizeof in_memory);
    char* from = static_cast<char*>(base) + at * page_size();
    if (system_call(SYS_mincore, system_call_argument(from), static_cast<long>(n * page_size()),
                    system_call_argument(in_memory)) != 0)
      return 0;
    for (size_t i = 0; i < n; ++i) found += in_memory[i] & 1u;
    at += n;
  }
  return found * page_size();
}

void prefer_huge_pages(void* base, size_t bytes, bool huge) noexcept {
  uintptr_t first = align_up(address_of(base), page_size()), end = align_down(address_of(base) + bytes, page_size());
  system_call(SYS_madvise, static_cast<long>(first), static_cast<long>(end - first), huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

uint64_t calls() noexcept { return call_count.load(std::memory_order_relaxed); }

#if defined(HM_FAULTS)
void fail_after(uint64_t n, uint64_t count) noexcept {
  uint64_t from = calls() + n + 1;
  fail_to.store(0, std::memory_order_relaxed);
  fail_from.store(from, std::memory_order_relaxed);
  fail_to.store(from + count, std::memory_order_relaxed);
}
#endif

}  // namespace hm::os
