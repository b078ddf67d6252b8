#include "profile/samples.h"

#include <bit>
#include <cerrno>

#include "base/slots.h"
#include "profile/mappings.h"

// Of glibc; not in musl.
extern "C" [[gnu::weak]] int backtrace(void** buffer, int size);

namespace hm {

constinit Samples samples;

namespace {

constexpr size_t kMostStacks = size_t{1} << 18;  // of up to half a kilobyte

// The unwinder may allocate, where a program has registered frames with it.
constinit thread_local bool unwinding = false;

size_t take_stack(uintptr_t* frames) noexcept {
  if (backtrace == nullptr || unwinding) return 0;
  unwinding = true;
  int n = backtrace(reinterpret_cast<void**>(frames), static_cast<int>(kMostFrames));
  unwinding = false;
  return n > 0 ? static_cast<size_t>(n) : 0;
}

uint64_t mix(uint64_t bits) noexcept {
  bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93;
  return bits ^ bits >> 32;
}

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

// The unwinder's own code.  When it allocates it may hold a lock that it would want again (frames that a program has
// registered).
constinit uintptr_t unwinder_start = 0, unwinder_end = 0;

bool ends_with_name(const char* file, const char* name) noexcept {  // behind the last slash
  const char* last = file;
  for (; *file != '\0'; ++file)
    if (*file == '/') last = file + 1;
  for (; *name != '\0'; ++name, ++last)
    if (*name != *last) return false;
  return true;
}

}  // namespace

int Samples::prepare() noexcept {
  uintptr_t frames[kMostFrames];
  if (take_stack(frames) == 0) return ENOTSUP;
  MappedArray<Mapping> mapping;
  if (!mapping.reserve(1)) return ENOMEM;
  for (Mappings all; all.next(mapping[0]);)
    if (ends_with_name(mapping[0].file, "libgcc_s.so")) unwinder_start = mapping[0].start, unwinder_end = mapping[0].end;
  mapping.clear();
  return 0;
}

size_t Samples::slot_of(uintptr_t block) const noexcept {
  size_t mask = table_.size() - 1, slot = mix(block) & mask;
  while (table_[slot].block != 0 && table_[slot].block != block) slot = (slot + 1) & mask;
  return slot;
}

bool Samples::make_room() noexcept {
  size_t live = live_.load(std::memory_order_relaxed);
  if (2 * (live + 1) <= table_.size()) return true;
  MappedArray<Sample> old;
  old.swap(table_);
  if (!table_.reserve(std::bit_floor(std::max<size_t>(2 * old.size(), 1024)))) return old.swap(table_), false;
  for (size_t i = 0; i < old.size(); ++i)
    if (old[i].block != 0) table_[slot_of(old[i].block)] = old[i];
  old.clear();
  return true;
}

void Samples::grow_index(size_t stacks) noexcept {
  if (2 * stacks <= index_.size()) return;
  MappedArray<uint32_t> grown;
  if (!grown.reserve(std::bit_ceil(4 * stacks))) return;
  for (uint32_t i = 1; i <= stack_count_; ++i) {
    size_t slot = stacks_[i].hash & (grown.size() - 1);
    while (grown[slot] != 0) slot = (slot + 1) & (grown.size() - 1);
    grown[slot] = i;
  }
  index_.swap(grown);
  grown.clear();
}

uint32_t Samples::intern(uintptr_t* frames, size_t n) noexcept {
  uint64_t hash = hash_of(frames, n);
  grow_index(stack_count_ + 1);
  if (index_.size() < 2 * (size_t{stack_count_} + 1)) return 0;
  size_t slot = hash & (index_.size() - 1);
  for (; index_[slot] != 0; slot = (slot + 1) & (index_.size() - 1)) {
    const Stack& known = stacks_[index_[slot]];
    if (known.hash == hash && known.frames == n && are_equal(frames, &frames_[known.first_frame], n)) return index_[slot];
  }
  if (stack_count_ + 1 == kMostStacks || !stacks_.reserve(size_t{stack_count_} + 2) || !frames_.reserve(frame_count_ + n))
    return 0;
  move_slots(&frames_[frame_count_], frames, n);
  stacks_[++stack_count_] = {hash, frame_count_, static_cast<uint32_t>(n), 0, 0, 0, 0};
  frame_count_ += static_cast<uint32_t>(n);
  return index_[slot] = stack_count_;
}

bool Samples::add(void* block, size_t size, double weight, const void* caller) noexcept {
  uintptr_t frames[kMostFrames];
  bool unwound_by_caller = unwinder_start <= address_of(caller) && address_of(caller) < unwinder_end;
  size_t n = unwound_by_caller ? 0 : take_stack(frames);
  LockGuard guard(lock_);
  uint32_t stack = n > 0 && make_room() ? intern(frames, n) : 0;
  if (stack == 0) return ++lost_, false;
  stacks_[stack].objects += weight;
  stacks_[stack].bytes += weight * static_cast<double>(size);
  Sample& sample = table_[slot_of(address_of(block))];
  if (sample.block == 0) live_.store(live_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  sample = {address_of(block), size, weight, stack};
  return true;
}

// Those behind it that it kept from their place move up.
void Samples::remove(const void* block) noexcept {
  LockGuard guard(lock_);
  if (table_.size() == 0) return;
  size_t mask = table_.size() - 1, hole = slot_of(address_of(block));
  if (table_[hole].block == 0) return;
  for (size_t slot = hole;;) {
    slot = (slot + 1) & mask;
    if (table_[slot].block == 0) break;
    size_t home = mix(table_[slot].block) & mask;
    if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
    table_[hole] = table_[slot];
    hole = slot;
  }
  table_[hole] = {};
  live_.store(live_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

void Samples::take(Snapshot& out) noexcept {
  LockGuard guard(lock_);
  if (!out.stacks.reserve(size_t{stack_count_} + 1) || !out.frames.reserve(frame_count_)) return;
  if (stack_count_ > 0) move_slots(out.stacks.begin(), stacks_.begin(), size_t{stack_count_} + 1);
  move_slots(out.frames.begin(), frames_.begin(), frame_count_);
  for (size_t i = 0; i < table_.size(); ++i) {
    if (table_[i].block == 0) continue;
    Stack& stack = out.stacks[table_[i].stack];
    stack.live_objects += table_[i].weight;
    stack.live_bytes += table_[i].weight * static_cast<double>(table_[i].size);
  }
  out.stack_count = stack_count_;
  out.lost = lost_;
  out.complete = true;
}

// Another thread had the lock, and perhaps was changing it: the child begins anew.
void Samples::repair(uint32_t before) noexcept {
  repair_after_fork(lock_, before, [this] {
    table_.forget(), stacks_.forget(), index_.forget(), frames_.forget();
    stack_count_ = frame_count_ = 0;
    live_.store(0, std::memory_order_relaxed);
  });
}

bool Samples::is_valid() noexcept {
  LockGuard guard(lock_);
  size_t live = 0;
  for (size_t i = 0; i < table_.size(); ++i) {
    if (table_[i].block == 0) continue;
    ++live;
    if (slot_of(table_[i].block) != i || table_[i].stack == 0 || table_[i].stack > stack_count_) return false;
  }
  return live == live_.load(std::memory_order_relaxed) && 2 * live <= table_.size();
}

}  // namespace hm
