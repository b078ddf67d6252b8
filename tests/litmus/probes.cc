// Runs, one after the other, the functions that hand memory from thread to thread, each on memory that takes it down the
// path of a hand-over.  watch.py watches every instruction of it: what litmus tests are made of is what the compiler made.
//
// Each window says on standard output what it is called and which words it may touch; then it calls its function.
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>

#include "api/allocator.h"
#include "base/codegen.h"
#include "base/os_pages.h"
#include "base/system_call.h"
#include "base/thread_exit.h"
#include "large/extent_table.h"

namespace hm::os {
void* mapped_before = nullptr;  // what the next call answers, so that its words can be named before it is made

void* map(size_t bytes, size_t alignment, size_t, Access) noexcept {  // stands in for base/os_pages.cc
  if (void* answer = mapped_before; answer != nullptr) return mapped_before = nullptr, answer;
  auto all = reinterpret_cast<uintptr_t>(
      mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return reinterpret_cast<void*>(align_up(all, alignment));
}

void* map_guarded(size_t bytes) noexcept { return map(bytes, kSlice); }
bool empty_in_children(void*, size_t) noexcept { return true; }
size_t page_size() noexcept { return 4 * kKiB; }
}  // namespace hm::os

using namespace hm;

namespace {

constexpr uint32_t kMe = 17, kOther = 18, kWaits = uint32_t{1} << 31;
uint32_t* held_by_other;  // a lock whose holder lets go of it when we go to sleep

struct Word {
  const char* name;
  const void* at;
  size_t bytes;
};

template <size_t kCount>
void window(const char* name, const Word (&words)[kCount]) {
  printf("window %s\n", name);
  for (const Word& word : words) printf("word %s %zx %zu\n", word.name, address_of(word.at), word.bytes);
  fflush(stdout);
}

// A call that the compiler cannot look into: it must neither fit the function to its arguments nor leave it out.
template <class Function>
Function* run(Function* function) {
  return hide_from_optimizer(function);
}

}  // namespace

// Stands in for the system's answers (HM_LIBC_CALLS).
long hm::system_call(long number, long a, long, long, long, long, long) noexcept {
  if (number == SYS_futex && a == system_call_argument(held_by_other) && held_by_other != nullptr) *held_by_other = 0;
  if (number == SYS_sched_yield) known_process->number.store(kFirstProcess, std::memory_order_relaxed);  // it is repaired
  return number == SYS_gettid || number == SYS_getpid ? long{kMe} : 0;
}

// The windows themselves, under C names that watch.py knows them by.
#define HM_WINDOW extern "C" HM_NOINLINE
HM_WINDOW void window_give_back(BlockState* state) { state->give_back(); }
HM_WINDOW uint64_t window_free_mask(BlockState* states) { return StateGroup(states).free_mask(); }
HM_WINDOW void window_take_all(BlockState* states) { StateGroup(states).take_all(); }
HM_WINDOW void window_take(BlockState* states, size_t k) { StateGroup(states).take(k); }
HM_WINDOW void window_take_two(BlockState* states, size_t k) {
  StateGroup(states).take(k);
  StateGroup(states).take(k + 1);
}
HM_WINDOW void window_free(void* block) { deallocate(block, "free"); }
HM_WINDOW void window_reclaim(Superblock* sb) {
  if (sb->is_empty()) sb->clear();
}
HM_WINDOW void window_format(Superblock* sb, ClassIndex c) { sb->format(c); }
HM_WINDOW SliceKind window_kind(const Superblock* sb) { return sb->kind(); }
HM_WINDOW void window_map_set(void* chunk) { AddressMap::set(chunk, ChunkKind::kSlices); }
HM_WINDOW ChunkKind window_map_kind(uintptr_t address) { return AddressMap::kind(address); }
HM_WINDOW bool window_leaf(char* start) { return extent_table.reserve(start); }
HM_WINDOW void window_extent(char* start) { extent_table.enter(*extent_table.create(start)); }
HM_WINDOW Extent* window_find(uintptr_t address) { return extent_table.find(address); }
HM_WINDOW uint64_t window_make_key(ThreadExit* exit) { return exit->make(); }
HM_WINDOW bool window_watch(ThreadExit* exit) { return exit->watch(exit); }
HM_WINDOW void window_forked() { process_was_forked(); }
HM_WINDOW bool window_lock(Lock* lock) { return lock->lock(); }
HM_WINDOW bool window_try_lock(Lock* lock) { return lock->try_lock(); }
HM_WINDOW void window_lock_wait(Lock* lock, uint32_t me) { lock->wait(me); }
HM_WINDOW void window_unlock(Lock* lock) { lock->unlock(); }

namespace {

uint64_t one_word(uint64_t value, BlockState*& states) {
  alignas(8) static uint64_t word;
  word = value;
  states = reinterpret_cast<BlockState*>(&word);
  return value;
}

HM_NOINLINE void states() {
  BlockState* s;
  one_word(StateGroup::kOnes, s);
  window("give_back", {{"s", s, 8}});
  run(window_give_back)(s + 1);
  one_word(StateGroup::kOnes, s);
  window("give_back_6", {{"s", s, 8}});
  run(window_give_back)(s + 6);
  one_word(0x0101010101010001, s);
  window("free_mask", {{"s", s, 8}});
  run(window_free_mask)(s);
  one_word(0x0101010101010001, s);
  window("take", {{"s", s, 8}});
  run(window_take)(s, 1);
  one_word(0x0101010101000001, s);
  window("take_two", {{"s", s, 8}});
  run(window_take_two)(s, 1);
  one_word(0, s);
  window("take_all", {{"s", s, 8}});
  run(window_take_all)(s);
}

// A superblock of eight blocks: its states are one word.
HM_NOINLINE void superblocks() {
  auto* region = static_cast<char*>(os::map(kRegion, kRegion));
  auto slice = address_of(region) + 50 * kSlice;
  Superblock& sb = Superblock::of(slice);
  ClassIndex c = class_of(4096);
  window("format", {{"k", &sb.kind_, 1}, {"d", &sb.blocks, 4}});
  run(window_format)(&sb, c);
  if (sb.blocks != StateGroup::kBlocks) abort();
  window("kind", {{"k", &sb.kind_, 1}});
  run(window_kind)(&sb);

  AddressMap::set(reinterpret_cast<void*>(align_down(slice, kChunk)), ChunkKind::kSlices);
  Shelf* somebody = reinterpret_cast<Shelf*>(region);
  sb.set_owner(somebody);
  sb.states[1].mark_taken();
  Word words[] = {{"s", sb.states, 8}, {"d", &sb.inverse, 4}};
  window("free", words);
  run(window_free)(sb.start + 4096);
  window("reclaim", words);
  run(window_reclaim)(&sb);
}

HM_NOINLINE void address_map() {
  void* chunk = os::map(kChunk, kChunk);
  auto unit = address_of(chunk) / kChunk;
  Word words[] = {{"m", &AddressMap::units_[unit], 1}};
  window("map_set", words);
  run(window_map_set)(chunk);
  window("map_kind", words);
  run(window_map_kind)(address_of(chunk) + 4096);
}

HM_NOINLINE void extents() {
  auto* arena = static_cast<char*>(os::map(ExtentTable::kArena, ExtentTable::kArena));
  auto* start = static_cast<char*>(os::map(2 * kChunk, kChunk));
  size_t unit = address_of(start) / kChunk;
  auto* leaf = reinterpret_cast<ExtentTable::Leaf*>(arena + ExtentTable::kArena - ExtentTable::kPiece);
  std::atomic<Extent*>* place = &leaf->starts[unit % ExtentTable::kInLeaf];
  Word words[] = {{"t", &extent_table.leaves_[unit / ExtentTable::kInLeaf], 8}, {"e", place, 8}};
  os::mapped_before = arena;
  window("leaf", words);
  run(window_leaf)(start);
  window("find", words);
  run(window_find)(address_of(start));
  Extent* extent = extent_table.create(start + kChunk);
  extent_table.release(*extent);  // the next one is this again
  window("extent", {{"e", place, 8}, {"b", &extent->start_, 8}});
  run(window_extent)(start);
  if (extent_table.find(address_of(start)) != extent) abort();
}

HM_NOINLINE void thread_exits() {
  static ThreadExit exit([](void*) {});
  Word words[] = {{"k", &exit.key_, 8}};
  window("make_key", words);
  run(window_make_key)(&exit);
  window("watch", words);
  run(window_watch)(&exit);
  window("make_key_late", words);
  run(window_make_key)(&exit);
}

HM_NOINLINE void forks() {
  repair_forks_with([](uint32_t) noexcept {});
  Word words[] = {{"p", &known_process->number, 4}, {"i", &known_process->id, 4}};
  known_process->number = kNewProcess;
  window("repair", words);
  run(window_forked)();
  known_process->number = kProcessInRepair;
  window("repair_by_other", words);
  run(window_forked)();
}

HM_NOINLINE void locks() {
  static Lock lock;
  auto* word = reinterpret_cast<uint32_t*>(&lock.word_);
  Word words[] = {{"l", word, 4}};
  (void)lock.lock();  // a thread asks for its id once
  *word = 0;
  window("lock", words);
  run(window_lock)(&lock);
  *word = 0;
  window("try_lock", words);
  run(window_try_lock)(&lock);
  window("unlock", words);
  run(window_unlock)(&lock);
  *word = 0;
  window("lock_spinning", words);
  run(window_lock_wait)(&lock, kMe);
  *word = kOther | kWaits;
  held_by_other = word;
  window("lock_woken", words);
  run(window_lock_wait)(&lock, kMe);
  *word = kOther;
  window("lock_marking", words);
  run(window_lock_wait)(&lock, kMe);
}

}  // namespace

int main() {
  states();
  superblocks();
  address_map();
  extents();
  thread_exits();
  locks();
  forks();
}
