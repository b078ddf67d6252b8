#include "pdes/key_sort.h"

#include <algorithm>
#include <utility>

namespace pdes {
namespace {

constexpr std::size_t kFew = 12;        // too few keys for a counting pass
constexpr std::uint32_t kCrowded = 32;  // too many keys in one slot for insertion sort

void insertion_sort(std::span<Key> keys) noexcept {
  for (std::size_t i = 1; i < keys.size(); ++i) {
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

// Copies keys to sorted, ordered by place(key), which is below their number.  True if no slot is crowded.
template <class Place>
bool KeySort::spread(std::span<const Key> keys, Key* sorted, Place place) {
  counts_.assign(keys.size() + 1, 0);
  if (slots_.size() < keys.size()) slots_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::uint32_t slot = place(keys[i]);
    slots_[i] = slot;
    ++counts_[slot + 1];
  }
  bool even = sum_up();
  for (std::size_t i = 0; i < keys.size(); ++i) sorted[counts_[slots_[i]]++] = keys[i];
  return even;
}

// Turns the number of keys in each slot into the slot's start.
bool KeySort::sum_up() noexcept {
  std::uint32_t most = 0, before = 0;
  for (std::uint32_t& count : counts_) {
    most = std::max(most, count);
    before += count;
    count = before;
  }
  return most <= kCrowded;
}

void KeySort::operator()(std::span<const Key> keys, Key* sorted, Time from, Time to) {
  if (keys.size() <= kFew) {
    std::copy(keys.begin(), keys.end(), sorted);
    return insertion_sort({sorted, keys.size()});
  }
  double per_slot = static_cast<double>(keys.size()) / (to - from);
  auto last = static_cast<double>(keys.size() - 1);
  bool even = spread(keys, sorted, [=](const Key& key) {
    double slot = (key.time - from) * per_slot;
    slot = slot > 0 ? slot : 0;  // also if it is not a number
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(slot < last ? slot : last));
  });
  if (!even) sort_crowded(sorted);
  insertion_sort({sorted, keys.size()});
}

// After spread by time: sorts the keys in crowded slots.  Whole groups of ties are common, anything else is rare.
void KeySort::sort_crowded(Key* sorted) {
  std::vector<std::span<Key>> crowded;
  std::uint32_t begin = 0;
  for (std::uint32_t end : counts_) {
    if (end - begin > kCrowded) crowded.emplace_back(sorted + begin, end - begin);
    begin = end;
  }
  for (std::span<Key> keys : crowded) {
    bool ties = std::all_of(keys.begin(), keys.end(), [&](const Key& key) { return key.time == keys[0].time; });
    if (ties) sort_ties(keys);
    else std::sort(keys.begin(), keys.end());
  }
}

void KeySort::sort_ties(std::span<Key> keys) {
  std::vector<Key> unsorted(keys.begin(), keys.end());
  auto [least, most] = std::minmax_element(unsorted.begin(), unsorted.end());
  std::uint64_t from = least->tie;
  double per_slot = static_cast<double>(keys.size() - 1) / (static_cast<double>(most->tie - from) + 1);
  bool even = spread(unsorted, keys.data(), [=](const Key& key) {
    return static_cast<std::uint32_t>(static_cast<double>(key.tie - from) * per_slot);
  });
  if (even) insertion_sort(keys);
  else std::sort(keys.begin(), keys.end());
}

}  // namespace pdes
