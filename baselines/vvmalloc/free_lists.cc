#include "baselines/vvmalloc/free_lists.h"

namespace hm::vvmalloc {

void FreeLists::insert(Block* block) noexcept {
  size_t list = list_of(block->size());
  block->prev = nullptr;
  block->next = heads_[list];
  if (block->next != nullptr) block->next->prev = block;
  heads_[list] = block;
  nonempty_ |= uint64_t{1} << list;
}

void FreeLists::remove(Block* block) noexcept {
  size_t list = list_of(block->size());
  if (block->next != nullptr) block->next->prev = block->prev;
  if (block->prev != nullptr) {
    block->prev->next = block->next;
    return;
  }
  heads_[list] = block->next;
  if (heads_[list] == nullptr) nonempty_ &= ~(uint64_t{1} << list);
}

Block* FreeLists::look(size_t list, size_t size) noexcept {
  int looks = list == kLists - 1 ? INT32_MAX : kLooks;  // no list is larger than the last: search all of it
  for (Block* block = heads_[list]; block != nullptr && looks > 0; block = block->next, --looks)
    if (block->size() >= size) return block;
  return nullptr;
}

Block* FreeLists::find(size_t size) noexcept {
  size_t list = list_of(size);
  if (Block* block = look(list, size)) return block;
  uint64_t larger = nonempty_ & ~uint64_t{1} << list;
  return larger == 0 ? nullptr : heads_[static_cast<size_t>(std::countr_zero(larger))];
}

Block* FreeLists::find_close(size_t size) noexcept {
  size_t list = list_of(size);
  if (Block* block = look(list, size)) return block;
  return list + 1 < kLists ? heads_[list + 1] : nullptr;
}

}  // namespace hm::vvmalloc
