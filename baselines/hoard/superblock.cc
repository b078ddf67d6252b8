#include "baselines/hoard/superblock.h"

namespace hm::hoard {

void Superblock::dedicate(size_t size_class) noexcept {
  size_class_ = static_cast<uint8_t>(size_class);
  block_size_ = classes[size_class].size;
  blocks_ = static_cast<uint16_t>(classes[size_class].blocks);
  in_use_ = 0;
  used_ = false;
  free_ = nullptr;
  fresh_ = first_block();
}

void* Superblock::take_block() noexcept {
  ++in_use_;
  if (free_ != nullptr) {
    FreeBlock* block = free_;
    free_ = block->next;
    return block;
  }
  char* block = fresh_;
  fresh_ += block_size_;
  return block;
}

void Superblock::put_block(void* block) noexcept {
  auto* free = static_cast<FreeBlock*>(block);
  free->next = free_;
  free_ = free;
  if (--in_use_ == 0) used_ = false;
}

size_t Superblock::fullness_group() const noexcept {
  if (in_use_ == blocks_) return kFull;
  if (in_use_ == 0) return kEmpty;
  auto free = static_cast<uint32_t>(blocks_ - in_use_), f = static_cast<uint32_t>(options.empty_fraction);
  return kUpToF + (free * uint32_t{kThousand} - 1) / (f * blocks_);
}

bool Superblock::may_start(const void* block) const noexcept {
  if (address_of(block) < address_of(first_block()) || block_size_ == 0) return false;
  size_t offset = address_of(block) - address_of(first_block());
  return offset % block_size_ == 0 && offset / block_size_ < blocks_;
}

// Every free block is either in the list once or was never handed out.
bool Superblock::is_valid() const noexcept {
  size_t listed = 0;
  for (const FreeBlock* block = free_; block != nullptr; block = block->next)
    if (!may_start(block) || reinterpret_cast<const char*>(block) >= fresh_ || ++listed > blocks_) return false;
  size_t handed_out = static_cast<size_t>(fresh_ - first_block()) / block_size_;
  return block_size_ == classes[size_class_].size && blocks_ == classes[size_class_].blocks && in_use_ <= blocks_ &&
         handed_out == in_use_ + listed;
}

void SuperblockList::push_front(Superblock& s) noexcept {
  s.previous_ = nullptr;
  s.next_ = front_;
  if (front_ != nullptr) front_->previous_ = &s;
  front_ = &s;
}

void SuperblockList::remove(Superblock& s) noexcept {
  (s.previous_ != nullptr ? s.previous_->next_ : front_) = s.next_;
  if (s.next_ != nullptr) s.next_->previous_ = s.previous_;
}

bool SuperblockList::is_linked() const noexcept {
  const Superblock* previous = nullptr;
  for (const Superblock* s = front_; s != nullptr; previous = s, s = s->next_)
    if (s->previous_ != previous) return false;
  return true;
}

}  // namespace hm::hoard
