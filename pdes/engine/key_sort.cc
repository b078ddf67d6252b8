#include "pdes/key_sort.h"

#include <algorithm>
#include <utility>

namespace pdes {
namespace {

constexpr std::size_t kFew = 12;       // keys that are not worth a counting pass
constexpr std::uint32_t kCrowded = 32; // keys in one slot that insertion sort should not see

void insertion_sort(Key* keys, std::size_t count) noexcept {
  for (std::size_t i = 1; i < count; ++i) {
    if (!(keys[i] < keys[i - 1])) continue;
    Key key = keys[i];
    std::size_t hole = i;
    do {
      keys[hole] = keys[hole - 1];
      --hole;
    } while (hole > 0 && key < keys[hole - 1]);
    keys[hole] = key;
  }
}

}  // namespace

// Copies keys to sorted, ordered by place(key) < count.  Whether no slot is crowded.
template <class Place>
bool KeySort::spread(const Key* keys, std::size_t count, Key* sorted, Place place) {
  counts_.assign(count + 1, 0);
  if (slots_.size() < count) slots_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto slot = static_cast<std::uint32_t>(place(keys[i]));
    slots_[i] = slot;
    ++counts_[slot + 1];
  }
  std::uint32_t most = 0, before = 0;
  for (std::size_t slot = 1; slot <= count; ++slot) {
    most = std::max(most, counts_[slot]);
    before += counts_[slot];
    counts_[slot] = before;
  }
  for (std::size_t i = 0; i < count; ++i) sorted[counts_[slots_[i]]++] = keys[i];
  return most <= kCrowded;
}

void KeySort::operator()(Key* keys, std::size_t count, Key* sorted, Time from, Time to) {
  if (count <= kFew) {
    std::copy_n(keys, count, sorted);
    return insertion_sort(sorted, count);
  }
  auto last = static_cast<double>(count - 1);
  double per_slot = static_cast<double>(count) / (to - from);
  bool even = spread(keys, count, sorted, [=](const Key& key) {
    double slot = (key.time - from) * per_slot;
    slot = slot > 0 ? slot : 0;  // no number, too
    return static_cast<std::int32_t>(slot < last ? slot : last);
  });
  if (!even) sort_crowded(keys, count, sorted);
  insertion_sort(sorted, count);
}

// After spread by time: sorts what lies in crowded slots.  Whole groups of ties are usual, anything else is rare.
void KeySort::sort_crowded(Key* keys, std::size_t count, Key* sorted) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> crowded;
  for (std::size_t slot = 0; slot < count; ++slot) {
    std::uint32_t begin = slot == 0 ? 0 : counts_[slot - 1];
    if (counts_[slot] - begin > kCrowded) crowded.emplace_back(begin, counts_[slot]);
  }
  for (auto [begin, end] : crowded) {
    Key* first = sorted + begin;
    std::size_t size = end - begin;
    if (std::all_of(first, sorted + end, [first](const Key& key) { return key.time == first->time; })) {
      std::copy_n(first, size, keys);
      sort_ties(keys, size, first);
    } else {
      std::sort(first, sorted + end);
    }
  }
}

// All at one time: by tie.
void KeySort::sort_ties(const Key* keys, std::size_t count, Key* sorted) {
  std::uint64_t least = keys[0].tie, most = least;
  for (std::size_t i = 1; i < count; ++i) {
    least = std::min(least, keys[i].tie);
    most = std::max(most, keys[i].tie);
  }
  double per_slot = static_cast<double>(count - 1) / (static_cast<double>(most - least) + 1);
  bool even = spread(keys, count, sorted, [=](const Key& key) {
    return static_cast<std::int32_t>(static_cast<double>(key.tie - least) * per_slot);
  });
  if (even) insertion_sort(sorted, count);
  else std::sort(sorted, sorted + count);
}

}  // namespace pdes
