// The edges of a small block in the hardened library.  A block of a class is, from its start:
//
//   the request    as many bytes as were asked for
//   the canary     up to 16 bytes that nobody can guess, none of them zero
//   the rest       zero
//   the edge       8 bytes: a sum over address, size and alignment that takes the key of the process, then those two
//
// An edge is written and cleared by one store, so whoever looks at a neighbour's finds a whole one, or zero: the neighbour is
// free then, or about to be handed out.
#pragma once
#include <algorithm>
#include <cstring>

#include "base/process.h"
#include "base/secret.h"
#include "base/size_classes.h"
#include "base/zeros.h"

namespace hm {

class BlockEdges {
 public:
  static constexpr size_t kBytes = sizeof(uint64_t);
  static constexpr size_t kMostSize = kSmallMax - kBytes;

  BlockEdges(void* block, size_t capacity) noexcept : start_(static_cast<char*>(block)), capacity_(capacity) {}

  // For a block that is zero behind the request.
  void write(size_t size, size_t alignment) noexcept {
    uint64_t word = make(start_, size | static_cast<size_t>(std::countr_zero(alignment)) << kSizeBits);
    Canary(word).write(start_ + size, canary_bytes(size));
    keep_order();  // whoever finds an edge finds all that is behind the request
    store(word);
  }
  // What is wrong with them, or null.  first: no block lies in front.
  const char* fault(bool first) const noexcept {
    uint64_t word = load(start_, capacity_);
    if (!is_whole(start_, word)) return kBehind;
    size_t size = size_in(word), canary = canary_bytes(size), rest = size + canary;
    if (!Canary(word).is_at(start_ + size, canary)) return kBehind;
    if (!is_zero(start_ + rest, capacity_ - kBytes - rest)) return kBehind;
    char* in_front = start_ - capacity_;
    uint64_t neighbour = first ? 0 : load(in_front, capacity_);
    return neighbour == 0 || is_whole(in_front, neighbour) ? nullptr : "written to in front of its start";
  }
  bool is_clear() const noexcept { return load(start_, capacity_) == 0; }
  bool is_whole() const noexcept { return is_whole(start_, load(start_, capacity_)); }
  size_t size() const noexcept { return size_in(load(start_, capacity_)); }
  size_t alignment() const noexcept { return size_t{1} << (load(start_, capacity_) >> (kSumBits + kSizeBits)); }
  // All of it but the first bytes of the request reads as zero afterwards, if there was no fault.
  void clear(size_t but = 0) noexcept {
    size_t size = this->size();
    store(0);
    keep_order();
    memset(start_ + but, 0, size + canary_bytes(size) - but);
  }

  static constexpr const char* kBehind = "written to behind its end";

 private:
  static constexpr size_t kMostCanary = 16;
  static constexpr int kSizeBits = 15, kAlignmentBits = 4, kSumBits = 64 - kSizeBits - kAlignmentBits;
  static_assert(kMostSize < size_t{1} << kSizeBits && kSmallMax < size_t{1} << ((1 << kAlignmentBits)));

  // No byte of it is zero: a string that is one byte too long ends in one.
  class Canary {
   public:
    explicit Canary(uint64_t word) noexcept : pattern_(word | 0x0101010101010101) {}
    void write(char* to, size_t bytes) const noexcept {
      for (size_t i = 0; i < bytes; i += kBytes) memcpy(to + i, &pattern_, std::min(bytes - i, kBytes));
    }
    // Whole words may be read, for behind it there is the edge.
    bool is_at(const char* at, size_t bytes) const noexcept {
      for (size_t i = 0; i < bytes; i += kBytes) {
        uint64_t there;
        memcpy(&there, at + i, kBytes);
        if ((there ^ pattern_) << 8 * (kBytes - std::min(bytes - i, kBytes)) != 0) return false;
      }
      return true;
    }

   private:
    uint64_t pattern_;
  };

  static uint64_t make(const char* start, uint64_t bits) noexcept {  // its first byte is not zero, as a canary's
    return secret.sum(address_of(start), bits) >> (64 - kSumBits) | 1 | bits << kSumBits;
  }
  static bool is_whole(const char* start, uint64_t word) noexcept { return word == make(start, word >> kSumBits); }
  static size_t size_in(uint64_t word) noexcept { return word >> kSumBits & ((size_t{1} << kSizeBits) - 1); }
  size_t canary_bytes(size_t size) const noexcept { return std::min(kMostCanary, capacity_ - kBytes - size); }
  static bool is_zero(const char* from, size_t bytes) noexcept {
    size_t head = std::min(-address_of(from) % kBytes, bytes);
    for (size_t i = 0; i < head; ++i)
      if (from[i] != 0) return false;
    return is_all_zero(from + head, bytes - head);
  }
  // Relaxed: it is one word, and a neighbour's says nothing about anything else.
  static uint64_t load(const char* start, size_t capacity) noexcept {
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(start + capacity - kBytes), __ATOMIC_RELAXED);
  }
  void store(uint64_t word) noexcept {
    __atomic_store_n(reinterpret_cast<uint64_t*>(start_ + capacity_ - kBytes), word, __ATOMIC_RELAXED);
  }

  char* start_;
  size_t capacity_;
};

}  // namespace hm
