#include "base/memory_tags.h"

#if defined(__aarch64__) && defined(HM_HARDENED)

#include <sys/auxv.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>

#include "base/secret.h"
#include "base/system_call.h"

namespace hm {

constinit Frozen<MemoryTags> memory_tags;

namespace {

// Of the system's headers, which older ones lack.
constexpr unsigned long kHwcap2Mte = 1ul << 18;
constexpr int kProtMte = 0x20;
constexpr long kSetTaggedAddressControl = 55;
constexpr long kTaggedAddresses = 1, kFaultsAtOnce = 1 << 1, kTagsShift = 3;

}  // namespace

int protection_for_tags() noexcept {
  static std::atomic<int> known{-1};  // relaxed: all threads find the same
  int bits = known.load(std::memory_order_relaxed);
  if (bits < 0) {
    bits = (getauxval(AT_HWCAP2) & kHwcap2Mte) != 0 ? kProtMte : 0;
    known.store(bits, std::memory_order_relaxed);
  }
  return bits;
}

bool MemoryTags::start() noexcept {
  if (protection_for_tags() == 0) return false;
  constexpr long kAllButNone = 0xfffe;
  on_ = system_call(SYS_prctl, kSetTaggedAddressControl, kTaggedAddresses | kFaultsAtOnce | kAllButNone << kTagsShift) == 0;
  return on_;
}

unsigned MemoryTags::tag_at(const void* granule) noexcept {
  uintptr_t found = align_down(address_of(granule), kGranule);
  asm volatile(".arch armv8.5-a+memtag\n\tldg %0, [%0]" : "+r"(found) : : "memory");
  return found >> kShift & 15;
}

// At least one granule, for a block of no bytes has an address, too.
void MemoryTags::set(char* block, unsigned tag, size_t bytes) noexcept {
  uintptr_t from = address_of(block) | uintptr_t{tag} << kShift, end = from + std::max(align_up(bytes, kGranule), kGranule);
  for (; from < end; from += kGranule) asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]" : : "r"(from) : "memory");
}

void* MemoryTags::give(void* block, size_t bytes, const void* in_front, const void* behind) const noexcept {
  if (!on_) return block;
  unsigned none = 1;  // bit i: not this one
  for (const void* neighbour : {in_front, behind})
    if (neighbour != nullptr) none |= 1u << tag_at(neighbour);
  unsigned tag = 0;
  while ((none >> tag & 1) != 0) tag = next_random() & 15;
  set(static_cast<char*>(block), tag, bytes);
  return reinterpret_cast<void*>(address_of(block) | uintptr_t{tag} << kShift);
}

}  // namespace hm

#else

int hm::protection_for_tags() noexcept { return 0; }

#endif
