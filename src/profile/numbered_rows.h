// Records that are found by what they say.  Each has a number, from 1 in the order in which they came, and keeps it: none is
// taken out.  For one thread at a time.
#pragma once
#include <bit>

#include "profile/mapped_array.h"

namespace hm {

template <class Row>  // has a uint64_t hash
class NumberedRows {
 public:
  Row& operator[](uint32_t number) const noexcept { return rows_[number]; }
  uint32_t count() const noexcept { return count_; }

  // The number of the row with this hash that is_it; 0: there is none.
  template <class IsIt>
  uint32_t find(uint64_t hash, IsIt is_it) const noexcept {
    if (index_.size() == 0) return 0;
    size_t slot = hash & mask();
    while (index_[slot] != 0 && !(rows_[index_[slot]].hash == hash && is_it(rows_[index_[slot]])))
      slot = (slot + 1) & mask();
    return index_[slot];
  }
  // A row that is not there yet.  0: no memory, or there are `most`.
  uint32_t add(const Row& row, size_t most) noexcept {
    size_t rows = size_t{count_} + 1;
    if (rows > most || !rows_.reserve(rows + 1) || !grow_index(rows)) return 0;
    rows_[++count_] = row;
    enter(index_, count_);
    return count_;
  }
  // The first is unused here, too.  False: no memory.
  bool copy_to(MappedArray<Row>& out) const noexcept {
    if (!out.reserve(size_t{count_} + 1)) return false;
    if (count_ > 0) move_slots(out.begin(), rows_.begin(), size_t{count_} + 1);
    return true;
  }
  // Without giving its memory back.
  void forget() noexcept { rows_.forget(), index_.forget(), count_ = 0; }

 private:
  size_t mask() const noexcept { return std::bit_floor(index_.size()) - 1; }

  void enter(MappedArray<uint32_t>& index, uint32_t number) noexcept {
    size_t last = std::bit_floor(index.size()) - 1, slot = rows_[number].hash & last;
    while (index[slot] != 0) slot = (slot + 1) & last;
    index[slot] = number;
  }
  bool grow_index(size_t rows) noexcept {
    if (index_.size() != 0 && 2 * rows <= mask()) return true;
    MappedArray<uint32_t> grown;
    if (!grown.reserve(std::bit_ceil(4 * rows))) return false;
    for (uint32_t i = 1; i <= count_; ++i) enter(grown, i);
    index_.swap(grown);
    grown.clear();
    return true;
  }

  MappedArray<Row> rows_;
  MappedArray<uint32_t> index_;  // by hash; open addressing, at most half full
  uint32_t count_ = 0;
};

}  // namespace hm
