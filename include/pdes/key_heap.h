// A 4-ary heap of keys: the pending event set of Queue::heap, and of the wheel's late events.
// Used by one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "pdes/event.h"

namespace pdes {

class KeyHeap {
 public:
  bool empty() const noexcept { return keys_.empty(); }
  std::size_t size() const noexcept { return keys_.size(); }
  std::size_t bytes() const noexcept { return keys_.capacity() * sizeof(Key); }
  const Key& least() const noexcept { return keys_.front(); }

  void push(const Key& key) {
    keys_.push_back(key);
    std::size_t hole = keys_.size() - 1;
    while (hole > 0) {
      std::size_t parent = (hole - 1) / kArity;
      if (!(key < keys_[parent])) break;
      keys_[hole] = keys_[parent];
      hole = parent;
    }
    keys_[hole] = key;
  }

  Key pop() noexcept {
    Key least = keys_.front(), last = keys_.back();
    keys_.pop_back();
    if (!keys_.empty()) sift_down(last);
    return least;
  }

  const std::vector<Key>& keys() const noexcept { return keys_; }  // unordered
  // Passes all keys to take, unordered, and frees the memory.
  template <class F>
  void drain(F&& take) {
    for (const Key& key : keys_) take(key);
    keys_ = std::vector<Key>();
  }
  // Removes the keys that it is told to.
  template <class F>
  void remove_if(F&& leaves) {
    if (std::erase_if(keys_, leaves) > 0) std::sort(keys_.begin(), keys_.end());  // a sorted array is a heap
  }

 private:
  static constexpr std::size_t kArity = 4;

  void sift_down(const Key& key) noexcept {
    std::size_t hole = 0, size = keys_.size();
    for (std::size_t child = 1; child < size; child = hole * kArity + 1) {
      std::size_t end = std::min(child + kArity, size), smallest = child;
      for (std::size_t i = child + 1; i < end; ++i)
        if (keys_[i] < keys_[smallest]) smallest = i;
      if (!(keys_[smallest] < key)) break;
      keys_[hole] = keys_[smallest];
      hole = smallest;
    }
    keys_[hole] = key;
  }

  std::vector<Key> keys_;
};

}  // namespace pdes
