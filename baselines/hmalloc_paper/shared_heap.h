// Shared memory of one thread and one size class: the current shared superblock, the exhausted ones (SSL), and the
// blocks of this size that the thread freed last (BCL).  Fig. 6 and 9.
//
// For the owner only.  Another thread that frees a block of ours puts it into its own BCL, or resets the block's flag.
#pragma once
#include <array>

#include "baselines/hmalloc_paper/count.h"
#include "baselines/hmalloc_paper/superblock.h"

namespace hm::hmalloc_paper {

inline constexpr size_t kSharedLimit = 32 * kKiB;             // requests of this size or more go to the system
inline constexpr size_t kClasses = kSharedLimit / kLine - 1;  // class 0 is 64 bytes, class 1 is 128, and so on

// The size of a block for a request of `size` bytes.
constexpr size_t block_size(size_t size) { return align_up(size + sizeof(Flag), kLine); }  // Fig. 6, line 2
constexpr uint32_t size_to_class(size_t block_size) { return static_cast<uint32_t>(block_size / kLine - 1); }
static_assert(size_to_class(block_size(1)) == 0 && size_to_class(block_size(48)) == 0);
static_assert(size_to_class(block_size(49)) == 1 && size_to_class(kSharedLimit - kLine) == kClasses - 1);

// The addresses of blocks that their thread freed.  Their flags still say occupied, so that no other thread takes them.
struct BlockCacheList {
  static constexpr size_t kMax = 100;  // section 4
  size_t count;
  std::array<void*, kMax> blocks;

  bool is_empty() const noexcept { return count == 0; }
  bool is_full() const noexcept { return count == kMax; }
  void insert(void* block) noexcept { blocks[count++] = block; }
  void* obtain() noexcept { return blocks[--count]; }  // the last one: the warmest
};

struct SharedHeap {
  SharedSuperblock* current;
  SuperblockList<SharedSuperblock> ssl;
  BlockCacheList cache;

  // The counters of one heap, over all its classes.
  struct Counts {
    Count superblocks_64k, superblocks_4m, ssl_walks, ssl_walk_steps, ssl_walk_hits;
  };

  // Fig. 6, lines 5 to 30.  Null if there is no memory.
  void* allocate(uint32_t size_class, Counts& counts) noexcept {
    if (HM_UNLIKELY(current == nullptr) && !open_first(size_class, counts)) return nullptr;
    if (HM_LIKELY(!cache.is_empty())) return cache.obtain();
    Flag* flag;
    if (current->vacant_objects > 0) flag = current->take_vacant();
    else if (current->index_th()->is_free()) flag = current->take_index_th();
    else flag = replace_current(counts);
    if (HM_UNLIKELY(flag == nullptr)) return nullptr;
    flag->occupy();
    return flag + 1;
  }
  // Fig. 9, lines 4 to 9, for any thread's block of this class.  Ends the program if the flag shows a second free.
  void free(Flag* flag, const char* function) noexcept {
    if (HM_LIKELY(!cache.is_full())) return cache.insert(flag + 1);
    reset(flag, function);
  }
  static void reset(Flag* flag, const char* function) noexcept {
    if (HM_UNLIKELY(flag->is_free())) freed_twice(flag, function);
    flag->reset();
  }
  bool is_valid(uint32_t size_class) noexcept;

 private:
  bool open_first(uint32_t size_class, Counts& counts) noexcept;
  Flag* replace_current(Counts& counts) noexcept;
  SharedSuperblock* traverse_ssl(Counts& counts) noexcept;
  bool cache_is_valid(uint32_t size_class) noexcept;
  [[noreturn]] static void freed_twice(Flag* flag, const char* function) noexcept;
};

}  // namespace hm::hmalloc_paper
