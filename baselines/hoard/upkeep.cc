// What a C library needs besides malloc and free.
#include "baselines/common/fork_locks.h"
#include "baselines/hoard/heaps.h"
#include "baselines/hoard/hoard.h"

namespace hm::hoard {
namespace {

constinit ForkLocks<kMaxHeaps + 4> held_for_fork;

// Calls function(lock) for all locks except the superblocks', in the order in which they are taken.
template <class Function>
void for_each_lock(Function function) noexcept {
  function(heaps.start_lock);
  for (size_t i = 1; i <= heaps.count(); ++i) function(heaps[i].lock);
  function(heaps.global().lock);
  function(heaps.superblocks.lock());
  function(heaps.large.lock());
}

}  // namespace

Usage usage() noexcept {
  LockGuard guard(heaps.global().lock);
  size_t mapped = heaps.traffic.superblocks * options.superblock + heaps.large.mapped();
  size_t allocated = heaps.in_use() + heaps.large.allocated();
  return {.mapped = mapped,
          .resident = mapped,
          .active = mapped,
          .allocated = allocated,
          .cached = 0,
          .retained = mapped > allocated ? mapped - allocated : 0};
}

void write_counters(FdWriter& text) noexcept {
  uint64_t objects = 0, from_used_superblocks = 0;
  for (size_t i = 1; i <= heaps.count(); ++i) {
    LockGuard guard(heaps[i].lock);
    objects += heaps[i].objects;
    from_used_superblocks += heaps[i].objects_from_used_superblocks;
  }
  LockGuard guard(heaps.global().lock);
  const Traffic& traffic = heaps.traffic;
  text << ",\"objects\":" << objects << ",\"large_objects\":" << traffic.large_objects
       << ",\"objects_from_used_superblocks\":" << from_used_superblocks
       << ",\"objects_that_came_along\":" << traffic.objects_that_came_along
       << ",\"transfers_to_global\":" << traffic.to_global << ",\"transfers_from_global\":" << traffic.from_global
       << ",\"superblocks\":" << traffic.superblocks << ",\"superblocks_recycled\":" << traffic.recycled
       << ",\"max_allocated\":" << traffic.max_allocated << ",\"max_in_use\":" << traffic.max_in_use
       << ",\"superblock_bytes\":" << options.superblock << ",\"class_base_thousandths\":" << options.class_base
       << ",\"empty_fraction_thousandths\":" << options.empty_fraction << ",\"keep\":" << options.keep
       << ",\"heaps\":" << heaps.count();
}

bool is_valid() noexcept {
  for (size_t i = 0; i <= heaps.count(); ++i) {
    LockGuard guard(heaps[i].lock);
    if (!heaps[i].is_valid(i == 0)) return false;
  }
  return heaps.large.is_valid();
}

void start() noexcept { heaps.start(true); }

// Superblocks' locks are left out: their holder changes nothing before it also holds a heap's lock.
void before_fork() noexcept {
  for_each_lock([](Lock& lock) { held_for_fork.take(lock); });
}
void after_fork_in_parent() noexcept { held_for_fork.release(); }

// Threads that waited for a heap's lock while holding a superblock's are not in the child.
void after_fork_in_child() noexcept {
  uint32_t before = rename_thread();
  for_each_lock([=](Lock& lock) { lock.adopt_after_fork(before); });
  for (size_t i = 0; i <= heaps.count(); ++i)
    heaps[i].for_each([=](Superblock& s) {
      s.lock.reset_after_fork(before);
      s.lock.adopt_after_fork(before);
    });
  held_for_fork.release();
}

}  // namespace hm::hoard
