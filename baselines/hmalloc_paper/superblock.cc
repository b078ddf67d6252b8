#include "baselines/hmalloc_paper/superblock.h"

#include <new>

namespace hm::hmalloc_paper {
namespace {

// GetNewSBfromOS of Fig. 5 and 6; zeroed.
void* new_superblock(size_t size) noexcept {
  return size == kFirstSuperblock ? first_superblocks.take() : next_superblocks.take();
}

}  // namespace

LocalSuperblock* LocalSuperblock::make(size_t size, LocalHeap& owner) noexcept {
  void* memory = new_superblock(size);
  if (memory == nullptr) return nullptr;
  auto* superblock = new (memory) LocalSuperblock;
  superblock->head = {SuperblockKind::kLocal, size};
  superblock->owner = &owner;
  superblock->start_addr = superblock->current_addr = static_cast<char*>(memory) + sizeof(LocalSuperblock);
  return superblock;
}

bool LocalSuperblock::is_valid() noexcept {
  return head.kind == SuperblockKind::kLocal && Superblock::of(this) == &head && current_addr >= start_addr &&
         current_addr <= end() && freed_num <= allocated_num && (allocated_num == freed_num) == (allocated_num == 0) &&
         (allocated_num == 0) == (current_addr == start_addr);
}

SharedSuperblock* SharedSuperblock::make(size_t size, uint32_t size_class) noexcept {
  void* memory = new_superblock(size);
  if (memory == nullptr) return nullptr;
  auto* superblock = new (memory) SharedSuperblock;
  superblock->head = {SuperblockKind::kShared, size};
  superblock->size_class = size_class;
  superblock->object_size = static_cast<uint32_t>((size_class + 1) * kLine);
  superblock->total_objects = static_cast<uint32_t>((size - sizeof(SharedSuperblock)) / superblock->object_size);
  superblock->span = superblock->total_objects * superblock->object_size;
  superblock->start_addr = superblock->current_addr = static_cast<char*>(memory) + sizeof(SharedSuperblock);
  superblock->vacant_objects = superblock->total_objects;
  return superblock;
}

// The header and every flag: blocks that were never allocated are free, and a flag has one of two values.
bool SharedSuperblock::is_valid() noexcept {
  if (head.kind != SuperblockKind::kShared || Superblock::of(this) != &head || index >= total_objects) return false;
  if (vacant_objects > total_objects || (vacant_objects > 0 && index != 0)) return false;
  if (current_addr != start_addr + (total_objects - vacant_objects) * object_size) return false;
  for (char* block = start_addr; block != current_addr; block += object_size)
    if (!reinterpret_cast<Flag*>(block)->is_sound()) return false;
  for (char* block = current_addr; block != start_addr + span; block += object_size)
    if (!reinterpret_cast<Flag*>(block)->is_free()) return false;
  return true;
}

}  // namespace hm::hmalloc_paper
