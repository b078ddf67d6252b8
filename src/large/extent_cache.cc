#include "large/extent_cache.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "large/extent_table.h"

namespace hm {

void ExtentCache::remove(Extent& extent) noexcept {
  extent.set_state(ExtentState::kHeld);
  kept_.remove(extent);
  bytes_ -= extent.bytes();
}

// Takes the first `bytes` of it out of the list; the rest stays.  If there is no descriptor for the rest, takes it whole.
Extent* ExtentCache::cut(Extent& extent, size_t bytes) noexcept {
  Extent* before = extent.previous;
  remove(extent);
  size_t more = extent.bytes() - bytes;
  Extent* rest = more > 0 ? extent_table.create(extent.start() + bytes) : nullptr;
  if (rest == nullptr) return &extent;
  rest->dirty = extent.dirty > bytes ? extent.dirty - bytes : 0;
  rest->mapping = extent.mapping;
  rest->since_ms = extent.since_ms;
  extent.set_bytes(bytes);  // E5: before they are the rest's
  extent.dirty = std::min(extent.dirty, bytes);
  rest->set_bytes(more);
  insert(before, *rest);
  return &extent;
}

namespace {

// Best fit; of those that are too short, the longest.
bool is_better(const Extent& a, const Extent& b, size_t bytes) noexcept {
  bool a_fits = a.bytes() >= bytes, b_fits = b.bytes() >= bytes;
  if (a_fits != b_fits) return a_fits;
  return a_fits ? a.bytes() < b.bytes() : a.bytes() > b.bytes();
}

}  // namespace

Extent* ExtentCache::take(size_t bytes, bool or_longest) noexcept {
  Extent* best = kept_.first();
  for (Extent* each = best; each != nullptr; each = each->next)
    if (is_better(*each, *best, bytes)) best = each;
  if (best == nullptr || (best->bytes() < bytes && !or_longest)) return nullptr;
  return cut(*best, std::min(bytes, best->bytes()));
}

Extent* ExtentCache::take_oldest() noexcept {
  Extent* oldest = kept_.first();
  for (Extent* each = oldest; each != nullptr; each = each->next)
    if (each->since_ms < oldest->since_ms) oldest = each;
  if (oldest != nullptr) remove(*oldest);
  return oldest;
}

Extent* ExtentCache::take_due(uint64_t before_ms, const char* behind) noexcept {
  Extent* due = kept_.first();
  while (due != nullptr && (due->since_ms > before_ms || due->start() <= behind)) due = due->next;
  if (due != nullptr) remove(*due);
  return due;
}

bool ExtentCache::grow(Extent& extent, size_t bytes) noexcept {
  Extent* next = kept_.first();
  while (next != nullptr && !extent.is_followed_by(next)) next = next->next;
  if (next == nullptr || bytes <= extent.bytes() || extent.bytes() + next->bytes() < bytes) return false;
  absorb(extent, *cut(*next, bytes - extent.bytes()));
  return true;
}

// Adds the extent that follows, which is in no list.  `dirty` grows first: a child must not find the new part called zero.
void ExtentCache::absorb(Extent& extent, Extent& next) noexcept {
  size_t bytes = extent.bytes(), more = next.bytes();
  extent.dirty = bytes + next.dirty;
  extent_table.leave(next);
  extent_table.release(next);  // E5
  extent.set_bytes(bytes + more);
}

// The joined extent is as old as its older half, so that what is in constant use does not preserve what is not.
void ExtentCache::join_with_next(Extent& extent) noexcept {
  Extent* next = extent.next;
  if (!extent.is_followed_by(next)) return;
  kept_.remove(*next);
  extent.since_ms = std::min(extent.since_ms, next->since_ms);
  absorb(extent, *next);
}

void ExtentCache::insert(Extent* before, Extent& extent) noexcept {
  kept_.insert(before, extent);
  bytes_ += extent.bytes();
  extent.set_state(ExtentState::kKept);
}

void ExtentCache::keep(Extent& extent) noexcept {
  extent.since_ms = os::now_ms();
  put_back(extent);
}

void ExtentCache::put_back(Extent& extent) noexcept {
  Extent* before = nullptr;
  for (Extent* each = kept_.first(); each != nullptr && each->start() < extent.start(); each = each->next) before = each;
  insert(before, extent);
  join_with_next(extent);
  if (before != nullptr) join_with_next(*before);
}

void ExtentCache::note_slack(Extent& extent, size_t slack) noexcept {
  extent.slack = slack;
  extent.since_ms = os::now_ms();
  put_slack_back(extent);
}

void ExtentCache::put_slack_back(Extent& extent) noexcept {
  slack_.push(extent);
  bytes_ += extent.slack;
}

void ExtentCache::forget_slack(Extent& extent) noexcept {
  if (extent.slack == 0) return;
  slack_.remove(extent);
  bytes_ -= std::exchange(extent.slack, 0);
}

Extent* ExtentCache::slack_until(uint64_t before_ms) const noexcept {
  Extent* due = slack_.first();
  while (due != nullptr && due->since_ms > before_ms) due = due->next;
  return due;
}

void ExtentCache::forget_all() noexcept {
  kept_.forget();
  slack_.forget();
  bytes_ = 0;
}

bool ExtentCache::is_valid() const noexcept {
  size_t bytes = 0;
  Extent* before = nullptr;  // a list whose links agree ends
  for (Extent* each = kept_.first(); each != nullptr; before = each, each = each->next) {
    bytes += each->bytes();
    if (each->previous != before) return false;
    if (each->state() != ExtentState::kKept || each->bytes() % os::page_size() != 0 || each->dirty > each->bytes())
      return false;
    if (each->next != nullptr && each->next->start() < each->end()) return false;
    if (each->is_followed_by(each->next)) return false;
  }
  before = nullptr;
  for (Extent* each = slack_.first(); each != nullptr; before = each, each = each->next) {
    bytes += each->slack;
    if (each->previous != before) return false;
    if (!each->is_live() || each->taken() + each->slack != each->dirty || each->dirty > each->bytes()) return false;
  }
  return bytes == bytes_;
}

}  // namespace hm
