// An array of plain records in memory of its own, for tables that are made while the program allocates.  For one thread at a
// time.
#pragma once
#include <algorithm>
#include <utility>

#include "base/os_pages.h"
#include "base/slots.h"

namespace hm {

template <class T>
class MappedArray {
 public:
  constexpr MappedArray() = default;
  MappedArray(const MappedArray&) = delete;
  MappedArray& operator=(const MappedArray&) = delete;

  T& operator[](size_t i) const noexcept { return data_[i]; }
  T* begin() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  // At least so many, the new ones all zero.  False if there is no memory: nothing has changed.
  bool reserve(size_t n) noexcept {
    if (n <= size_) return true;
    size_t bytes = align_up(std::max(n, 2 * size_) * sizeof(T), std::max(os::page_size(), kLeast));
    auto* data = static_cast<T*>(os::map(bytes, os::page_size()));
    if (data == nullptr) return false;
    move_slots(data, data_, size_);
    clear();
    data_ = data;
    size_ = bytes / sizeof(T);
    mapped_ = bytes;
    return true;
  }
  void clear() noexcept {
    if (data_ != nullptr) os::unmap(data_, mapped_);
    forget();
  }
  // Without giving its memory back.
  void forget() noexcept { data_ = nullptr, size_ = mapped_ = 0; }
  void swap(MappedArray& other) noexcept {
    std::swap(data_, other.data_), std::swap(size_, other.size_), std::swap(mapped_, other.mapped_);
  }

 private:
  friend struct Layout;
  static constexpr size_t kLeast = 64 * kKiB;
  T* data_ = nullptr;
  size_t size_ = 0, mapped_ = 0;  // entries, bytes
};

}  // namespace hm
