#include "pdes/key_sort.h"

#include <algorithm>
#include <utility>

namespace pdes {
namespace {

constexpr std::size_t kFew = 12;        // too few keys for a counting pass
constexpr std::size_t kSlots = 2;       // for each key, by time: so that fewer share one
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

// In the order of the pieces.
template <class F>
void each(KeySort::Pieces pieces, F&& f) {
  for (const auto& piece : pieces)
    for (const Key& key : piece) f(key);
}

}  // namespace

// Finds the slot of each key, place(key), and where each slot begins.  Returns how many keys the fullest one has.
template <class Place>
std::uint32_t KeySort::count_places(Pieces pieces, std::size_t count, std::size_t slots, Place place) {
  counts_.assign(slots + 1, 0);
  if (slots_.size() < count) slots_.resize(count);
  std::uint32_t* next = slots_.data();
  each(pieces, [&](const Key& key) { ++counts_[(*next++ = place(key)) + 1]; });
  std::uint32_t most = 0, before = 0;
  for (std::uint32_t& keys : counts_) {
    most = std::max(most, keys);
    before += keys;
    keys = before;
  }
  return most;
}

// Keys of one slot stay in their order.
void KeySort::move_to_places(Pieces pieces, Key* sorted) {
  const std::uint32_t* slot = slots_.data();
  each(pieces, [&](const Key& key) { sorted[counts_[*slot++]++] = key; });
}

void KeySort::operator()(Pieces pieces, std::size_t count, Key* sorted, Time from, Time to) {
  if (count <= kFew) {
    Key* end = sorted;
    each(pieces, [&](const Key& key) { *end++ = key; });
    return insertion_sort({sorted, count});
  }
  if (pieces.front().front().time == pieces.back().back().time && sort_ties(pieces, count, sorted)) return;
  const std::size_t slots = kSlots * count;
  const double per_slot = static_cast<double>(slots) / (to - from);
  const auto last = static_cast<double>(slots - 1);
  const std::uint32_t most = count_places(pieces, count, slots, [=](const Key& key) {
    double slot = (key.time - from) * per_slot;
    slot = slot > 0 ? slot : 0;  // also if it is not a number
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(slot < last ? slot : last));
  });
  move_to_places(pieces, sorted);
  if (most > kCrowded) sort_crowded(sorted);
  insertion_sort({sorted, count});
}

// After the move to places by time: sorts the keys in crowded slots.  Whole groups of ties are common, anything else is rare.
void KeySort::sort_crowded(Key* sorted) {
  std::vector<std::span<Key>> crowded;
  std::uint32_t begin = 0;
  for (std::uint32_t end : counts_) {
    if (end - begin > kCrowded) crowded.emplace_back(sorted + begin, end - begin);
    begin = end;
  }
  for (std::span<Key> keys : crowded) {
    const std::vector<Key> unsorted(keys.begin(), keys.end());
    const std::span<const Key> piece = unsorted;
    if (!sort_ties({&piece, 1}, keys.size(), keys.data())) std::sort(keys.begin(), keys.end());
  }
}

// False, and nothing is done, if they are not all of one time.  A source sends in the order of its ties, so what it sent in a
// row is sorted.
bool KeySort::sort_ties(Pieces pieces, std::size_t count, Key* sorted) {
  const Time time = pieces.front().front().time;
  std::uint64_t least = pieces.front().front().tie, most = least;
  bool same = true;
  each(pieces, [&](const Key& key) {
    same &= key.time == time;
    least = std::min(least, key.tie);
    most = std::max(most, key.tie);
  });
  if (!same) return false;
  const double per_slot = static_cast<double>(count - 1) / (static_cast<double>(most - least) + 1);
  const std::uint32_t fullest = count_places(pieces, count, count, [=](const Key& key) {
    return static_cast<std::uint32_t>(static_cast<double>(key.tie - least) * per_slot);
  });
  move_to_places(pieces, sorted);
  const std::span<Key> keys(sorted, count);
  if (fullest > kCrowded) {
    std::uint32_t begin = 0;
    for (std::uint32_t end : counts_) {
      const auto crowd = keys.subspan(begin, end - begin);
      if (crowd.size() > kCrowded && !std::is_sorted(crowd.begin(), crowd.end())) std::sort(crowd.begin(), crowd.end());
      begin = end;
    }
  }
  insertion_sort(keys);
  return true;
}

}  // namespace pdes
