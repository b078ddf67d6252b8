#include "profile/samples.h"

#include "base/clock.h"
#include "base/process.h"
#include "base/slots.h"
#include "pages/options.h"
#include "profile/hash.h"
#include "profile/stack_taker.h"

namespace hm {

constinit Samples samples;

namespace {

constexpr size_t kMostStacks = size_t{1} << 18;  // of up to half a kilobyte

uint64_t hash_of(const uintptr_t* frames, size_t n) noexcept {
  uint64_t hash = n;
  for (size_t i = 0; i < n; ++i) hash = mix(hash + frames[i]);
  return hash;
}

// The compiler may not turn the loop into a call of memcmp, which the library does not use.
bool are_equal(const uintptr_t* a, const uintptr_t* b, size_t n) noexcept {
  uintptr_t differences = 0;
  for (size_t i = 0; i < n; ++i) differences |= a[i] ^ b[i];
  return differences == 0;
}

}  // namespace

size_t Samples::slot_of(uintptr_t block) const noexcept {
  size_t mask = slots_ - 1, slot = mix(block) & mask;
  while (table_[slot].block != 0 && table_[slot].block != block) slot = (slot + 1) & mask;
  return slot;
}

bool Samples::make_room() noexcept {
  if (2 * (live_.load(std::memory_order_relaxed) + 1) <= slots_) return true;
  MappedArray<Sample> old;
  size_t before = slots_, after = std::max<size_t>(2 * slots_, 1024);
  old.swap(table_);
  if (!table_.reserve(after)) return old.swap(table_), false;
  slots_ = after;
  for (size_t i = 0; i < before; ++i)
    if (old[i].block != 0) table_[slot_of(old[i].block)] = old[i];
  old.clear();
  return true;
}

uint32_t Samples::intern(uintptr_t* frames, size_t n) noexcept {
  uint64_t hash = hash_of(frames, n);
  uint32_t known = stacks_.find(
      hash, [&](const Stack& stack) { return stack.frames == n && are_equal(frames, &frames_[stack.first_frame], n); });
  if (known != 0) return known;
  if (!frames_.reserve(frame_count_ + n)) return 0;
  uint32_t added = stacks_.add({hash, frame_count_, static_cast<uint32_t>(n), 0, 0, 0, 0}, kMostStacks);
  if (added == 0) return 0;
  move_slots(&frames_[frame_count_], frames, n);
  frame_count_ += static_cast<uint32_t>(n);
  return added;
}

void Samples::enter(const Sample& sample) noexcept {
  Sample& entry = table_[slot_of(sample.block)];
  count(entry, false);
  count(sample, true);
  entry = sample;
}

// An entry that is empty counts for nothing.
void Samples::count(const Sample& sample, bool more) noexcept {
  auto change = [more](auto& sum, size_t by) {
    size_t before = sum.load(std::memory_order_relaxed);
    sum.store(more ? before + by : before - by, std::memory_order_relaxed);
  };
  if (sample.block != 0) change(live_, 1);
  if (sample.stack != 0) change(profiled_, 1);
  change(held_bytes_, static_cast<uint64_t>(bytes_of(sample)));
}

bool Samples::add(void* block, size_t size, double weight, const void* caller) noexcept {
  uintptr_t frames[kMostFrames];
  size_t n = stack_of_allocation(frames, caller);
  bool follow = options.profile_frees != 0;
  SampledThread thread = follow ? this_thread() : SampledThread{};
  uint64_t now = follow ? os::now_ns() : 0;
  LockGuard guard(lock_);
  uint32_t stack = n > 0 && make_room() ? intern(frames, n) : 0;
  if (stack == 0) return ++lost_, false;
  stacks_[stack].objects += weight;
  stacks_[stack].bytes += weight * static_cast<double>(size);
  uint32_t row = follow ? lives_.meet(thread) : 0;
  auto inside = static_cast<uint32_t>(frames_inside({frames, n}, caller));
  enter({address_of(block), size, weight, stack, row, my_thread_id(), inside, now});
  return true;
}

const EndedSample* Samples::find_ended(uintptr_t block) const noexcept {
  for (size_t i = ended_count_; i > 0 && i + kEnded > ended_count_; --i)
    if (ended_[(i - 1) % kEnded].was.block == block) return &ended_[(i - 1) % kEnded];
  return nullptr;
}

CallTrace Samples::trace_of(uint32_t stack, uint32_t inside, uint32_t thread_id) const noexcept {
  CallTrace trace;
  std::span<uintptr_t> frames;
  if (stack != 0) frames = {&frames_[stacks_[stack].first_frame + inside], stacks_[stack].frames - inside};
  trace.keep(frames, thread_id);
  return trace;
}

void Samples::describe(const void* block) noexcept {
  bool live = false, ended = false;
  CallTrace allocated, freed;
  {
    TryLockGuard guard(lock_);
    if (!guard.holds()) return;
    const Sample* sample = slots_ == 0 ? nullptr : &table_[slot_of(address_of(block))];
    live = sample != nullptr && sample->stack != 0;
    const EndedSample* last = live ? nullptr : find_ended(address_of(block));
    ended = last != nullptr;
    if (live || ended) {
      const Sample& known = live ? *sample : last->was;
      allocated = trace_of(known.stack, known.inside, known.thread_id);
    }
    if (ended) freed = trace_of(last->freed_at, last->freed_inside, last->freed_by);
  }
  if (ended) print("one sampled there before was freed", freed);
  if (live || ended) print("allocated", allocated);
}

// The allocation is told of all the same.
bool Samples::drop(const void* block) noexcept {
  LockGuard guard(lock_);
  return take_out(address_of(block)).block != 0;
}

bool Samples::add_without_stack(const void* block) noexcept {
  LockGuard guard(lock_);
  if (!make_room()) return false;
  enter({address_of(block), 0, 0, 0, 0, 0, 0, 0});
  return true;
}

// Those behind it that it kept from their place move up.
Sample Samples::take_out(uintptr_t block) noexcept {
  if (slots_ == 0) return {};
  size_t mask = slots_ - 1, hole = slot_of(block);
  Sample found = table_[hole];
  if (found.block == 0) return {};
  for (size_t slot = hole;;) {
    slot = (slot + 1) & mask;
    if (table_[slot].block == 0) break;
    size_t home = mix(table_[slot].block) & mask;
    if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
    table_[hole] = table_[slot];
    hole = slot;
  }
  table_[hole] = {};
  count(found, false);
  return found;
}

bool Samples::remove(const void* block, const void* caller, bool is_freed) noexcept {
  uint64_t now = os::now_ns();
  Sample ended;
  uint32_t epoch;
  {
    LockGuard guard(lock_);
    ended = take_out(address_of(block));
    epoch = epoch_;
    if (ended.born_ns <= in_this_process_since_) {
      if (ended.stack != 0 && is_freed) remember({ended, 0, 0, my_thread_id()});
      return ended.block != 0;
    }
  }
  uintptr_t frames[kMostFrames];
  size_t n = stack_of_free(frames, caller);
  SampledThread thread = this_thread();
  LockGuard guard(lock_);
  if (epoch != epoch_) return true;  // a signal handler of this thread has forked, and this is the child
  uint32_t freed_at = n > 0 ? intern(frames, n) : 0;
  if (is_freed) remember({ended, freed_at, static_cast<uint32_t>(frames_inside({frames, n}, caller)), thread.id});
  uint32_t freed_by = lives_.meet(thread);
  if (freed_by == ended.thread && thread.id != ended.thread_id) freed_by = lives_.meet_another(thread);
  uint32_t age = age_class(now - std::min(now, ended.born_ns));
  if (!lives_.add({0, ended.stack, freed_at, ended.thread, freed_by, age, 1, ended.weight, bytes_of(ended)})) ++lost_;
  return true;
}

void Samples::take(Snapshot& out) noexcept {
  LockGuard guard(lock_);
  if (!stacks_.copy_to(out.stacks) || !out.frames.reserve(frame_count_) || !lives_.all().copy_to(out.lives) ||
      !lives_.threads().copy_to(out.threads))
    return;
  move_slots(out.frames.begin(), frames_.begin(), frame_count_);
  for (size_t i = 0; i < slots_; ++i) {
    if (table_[i].stack == 0) continue;
    Stack& stack = out.stacks[table_[i].stack];
    stack.live_objects += table_[i].weight;
    stack.live_bytes += bytes_of(table_[i]);
  }
  out.stack_count = stacks_.count();
  out.life_count = lives_.all().count();
  out.thread_count = lives_.threads().count();
  out.lost = lost_;
  out.complete = true;
}

// If another thread had the lock, and perhaps was changing it, the child begins anew.  What it has of its parent is not
// followed to its end: another thread had allocated it, by number, and nobody handed it over.
void Samples::repair(uint32_t before) noexcept {
  in_this_process_since_ = os::now_ns();
  repair_after_fork(lock_, before, [this] {
    table_.forget(), stacks_.forget(), frames_.forget(), lives_.forget();
    slots_ = 0, frame_count_ = 0, ended_count_ = 0;
    ++epoch_;
    live_.store(0, std::memory_order_relaxed), profiled_.store(0, std::memory_order_relaxed);
    held_bytes_.store(0, std::memory_order_relaxed);
  });
}

bool Samples::is_valid() noexcept {
  LockGuard guard(lock_);
  size_t live = 0, profiled = 0;
  for (size_t i = 0; i < slots_; ++i) {
    if (table_[i].block == 0) continue;
    ++live, profiled += table_[i].stack != 0;
    if (slot_of(table_[i].block) != i || table_[i].stack > stacks_.count()) return false;
  }
  for (uint32_t i = 1; i <= lives_.all().count(); ++i)
    if (lives_.all()[i].allocated_at > stacks_.count() || lives_.all()[i].freed_at > stacks_.count()) return false;
  return live == live_.load(std::memory_order_relaxed) && profiled == profiled_.load(std::memory_order_relaxed) &&
         2 * live <= slots_;
}

}  // namespace hm
