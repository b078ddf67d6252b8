"""The faults.  Each replaces one piece of text, which must occur exactly once in its file, and names who should notice."""
import dataclasses

UNIT, CHECKED, STRESS, LOCAL_STRESS = "unit", "unit_checked", "stress", "stress_local"
CODEGEN, MISUSE, TSAN_UNIT, TSAN_STRESS = "codegen", "misuse", "tsan_unit", "tsan_stress"


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    old: str
    new: str
    killers: tuple = (UNIT, STRESS)


MUTANTS = [
    # The hand-over
    Mutant("give_back_without_release", "src/core/block_state.h", "uint8_t{kFree}, __ATOMIC_RELEASE",
           "uint8_t{kFree}, __ATOMIC_RELAXED", (TSAN_UNIT, TSAN_STRESS)),
    Mutant("unlock_without_release", "src/base/lock.cc", "word_.exchange(0, std::memory_order_release)",
           "word_.exchange(0, std::memory_order_relaxed)", (TSAN_UNIT, TSAN_STRESS)),
    Mutant("locked_cache", "src/core/block_cache.h", "top_.store(top, std::memory_order_relaxed)",
           "top_.store(top)", (CODEGEN,)),
    # States and caches
    Mutant("cached_not_marked", "src/core/fast_path.h", "  if constexpr (kChecked) state.mark_cached();\n", "",
           (CHECKED,)),
    Mutant("repeat_not_compared", "src/core/fast_path.h",
           "  if (HM_UNLIKELY(*top == block)) return free_slow(block, function);\n", "", (MISUSE,)),
    Mutant("repeat_not_compared_when_sized", "src/core/block_cache.h", "HM_LIKELY(*top != block) && push", "push"),
    Mutant("sweep_beyond_the_end", "src/core/superblock.cc",
           "    if (at + StateGroup::kBlocks > blocks) mask &= (uint64_t{1} << (blocks - at) * 8) - 1;\n", ""),
    Mutant("sweep_takes_nothing_off", "src/core/superblock.cc", "    group.take(mask);\n", ""),
    Mutant("whole_group_that_is_not", "src/core/superblock.cc", "  if (mask != StateGroup::kOnes) return false;\n", ""),
    Mutant("wrong_inverse", "src/core/superblock.cc", "<< 32) + block_size - 1) / block_size", "<< 32)) / block_size"),
    Mutant("half_free_is_free", "src/core/superblock.cc",
           "if (!StateGroup(states + i).all_free()) return false;",
           "if (StateGroup(states + i).free_mask() == 0) return false;"),
    Mutant("full_and_current", "src/core/small_heap.cc",
           "shelve(c, *state.current);\n      state.current = nullptr;", "shelve(c, *state.current);"),
    Mutant("refused_block_lost", "src/core/small_heap.cc",
           "  give_back(sb, state);\n}\n\n// The oldest", "  (void)state;\n}\n\n// The oldest"),
    Mutant("flushed_and_kept", "src/core/small_heap.cc", "  cache.set_top(cache.top() - blocks);\n", ""),
    # Slices, large blocks, the system
    Mutant("map_not_cleared", "src/pages/slice_pool_purge.cc",
           "  AddressMap::set(slice_at(chunk, 0), ChunkKind::kGone);\n", ""),
    Mutant("used_slice_purged", "src/pages/slice_pool.cc", "  chunk.dirty_before &= ~mask;\n", ""),
    Mutant("dirty_called_zero", "src/pages/slice_pool.cc", "(chunk.used & mask) == 0;", "(chunk.dirty & mask) == 0;"),
    Mutant("tails_forgotten", "src/large/runs.cc",
           "for (size_t i = 0; i < slices; ++i) (&first)[i].set_kind(SliceKind::kUnused);", "first.set_kind(SliceKind::kUnused);"),
    Mutant("calloc_trusts_pages", "src/api/allocator.cc", "std::min(got.dirty, bytes));", "0);"),
    Mutant("slack_purged_after_growth", "src/large/huge.cc",
           "    store.cache.forget_slack(extent);  // or others would purge what is going to be the block's\n", ""),
    Mutant("joined_and_called_zero", "src/large/extent_cache.cc", "  extent.dirty = bytes + next.dirty;\n", ""),
    Mutant("rest_called_zero", "src/large/extent_cache.cc",
           "  rest->dirty = extent.dirty > bytes ? extent.dirty - bytes : 0;\n", ""),
    Mutant("cut_owned_twice", "src/large/extent_cache.cc",
           "  extent.set_bytes(bytes);  // E5: before they are the rest's\n  extent.dirty = std::min(extent.dirty, bytes);\n"
           "  rest->set_bytes(more);\n",
           "  rest->set_bytes(more);\n  extent.set_bytes(bytes);\n  extent.dirty = std::min(extent.dirty, bytes);\n"),
    Mutant("unmapped_and_owned", "src/large/huge_store.cc", "  set_bytes(extent, 0);  // E5\n", ""),
    Mutant("moved_and_owned", "src/large/huge_store.cc", "  set_bytes(extent, 0);  // E5: the next who maps memory may get this\n", ""),
    Mutant("repaired_twice", "src/large/huge.cc", "  store.cache.forget_all();\n", ""),
    Mutant("no_first_guard", "src/pages/slice_pool.cc", "{size_t{0}, kSecondGuard}", "{kSecondGuard}"),
    Mutant("heap_without_guards", "src/threads/thread_heap.cc", "os::map_guarded(sizeof(ThreadHeap) + kSlotBytes)",
           "os::map(sizeof(ThreadHeap) + kSlotBytes, os::page_size())"),
    Mutant("each_opens_a_chunk", "src/pages/slice_pool.cc",
           "  LockGuard turn(opener.lock);\n", ""),
    Mutant("no_way_made", "src/pages/slice_pool_purge.cc", "chunk != nullptr && purged < most", "chunk != nullptr && purged > most"),
    Mutant("kept_without_bound", "src/large/huge.cc", "    dropped = store.make_room(0);\n", ""),
    Mutant("kept_in_vain_for_ever", "src/large/huge.cc", "    store.retention.on_expire(kept - store.cache.bytes());\n", ""),
    Mutant("realloc_copies_too_little", "src/api/allocator.cc", "memcpy(fresh, block, std::min(size, live.capacity));",
           "memcpy(fresh, block, std::min(size, live.capacity) / 2);"),
    # Threads and local memory
    Mutant("heap_published_while_used", "src/threads/registry.cc",
           "  set_my_heap(nullptr);  // R2: before the heap is published\n", ""),
    Mutant("foreign_heaps_used_after_fork", "src/threads/registry.cc",
           "heap->shelf.stranded = heap->shelf.stranded || (heap != my_heap() && heap != fallback_);",
           "heap->shelf.stranded = false;"),
    # Memory that goes back at once
    Mutant("witness_always_good", "src/core/superblock.h",
           "return witness != &state && !witness->looks_free();", "return witness != &state;"),
    Mutant("nobody_watches", "src/core/superblock_pool.h",
           "{ sb.watch(true), queue_of(sb).push(sb); }", "{ queue_of(sb).push(sb); }"),
    Mutant("emptied_superblock_stays", "src/core/superblock_pool.cc", "    if (empty) release(first);\n", "    if (empty) superblock_pool.push(first);\n"),
    Mutant("surplus_stays", "src/pages/slice_pool_purge.cc", "  return whole ? slices / 2 : slices;\n", "  return SIZE_MAX / kSlice / (whole + slices);\n"),
    Mutant("holes_do_not_wait", "src/pages/slice_pool_purge.cc", "  return whole ? slices / 2 : slices;\n", "  return whole ? slices / 2 : kMinPatience;\n"),
    Mutant("holes_go_first", "src/pages/slice_pool_purge.cc", "  return whole ? slices / 2 : slices;\n", "  return slices + !whole;\n"),
    Mutant("others_superblocks_first", "src/core/superblock_pool.cc", "if (sb == nullptr && !slice_pool.has_resident(slices_of(c)))", "if (sb == nullptr)"),
    Mutant("residents_elsewhere_count", "src/pages/slice_pool.cc", "  return look_for(n).warm != 0;\n", "  return true;\n"),
    Mutant("a_purge_does_not_look_again", "src/pages/slice_pool_purge.cc", "  give_back_surplus(false);  // what", "  // what"),
    Mutant("refused_is_tried_by_each_free", "src/pages/slice_pool_purge.cc", "  chunk.refused = (chunk.refused & ~due) | refused;\n", ""),
    Mutant("refused_is_closed_with_its_chunk", "src/pages/slice_pool_purge.cc", "(chunk.dirty | chunk.dirty_before) == 0", "chunk.dirty_before == 0"),
    Mutant("never_used_stays_open", "src/pages/slice_pool_purge.cc", "    if (due == 0 && (!whole || what == Purge::kSurplus)) return 0;\n", "    if (due == 0) return 0;\n"),
    Mutant("nothing_is_missed", "src/pages/slice_pool_purge.cc", "  if (retention_.has_given_back())", "  if (false)"),
    # The child of a fork
    Mutant("slices_not_rebuilt", "src/pages/slice_pool_repair.cc", "  rebuild();\n  lock_.unlock();", "  lock_.unlock();"),
    Mutant("purge_not_undone", "src/pages/slice_pool_repair.cc", "  if (whole && purge_broken) undo_purge();\n", ""),
    Mutant("purge_noted_too_late", "src/pages/slice_pool_purge.cc",
           "  claimed_.chunk = &chunk;\n  keep_order();\n  chunk.free &= ~slices;",
           "  chunk.free &= ~slices;\n  keep_order();\n  claimed_.chunk = &chunk;"),
    Mutant("fallback_kept_after_fork", "src/threads/registry.cc", "[this] { fallback_ = nullptr; }", "[] {}"),
    Mutant("queues_not_repaired", "src/core/superblock_pool.cc", "[&] { queue.repair(); }", "[] {}"),
    Mutant("queue_cut_by_a_push", "src/core/superblock_queue.h", "    keep_order();\n    (head_ == nullptr ? tail_ : head_->previous) = &sb;\n    head_ = &sb;\n",
           "    sb.next = nullptr;\n    Superblock* rest = std::exchange(head_, &sb);\n    keep_order();\n    sb.next = rest;\n"),
    Mutant("dead_heaps_cut_by_one_more", "src/threads/registry.cc",
           "  heap.next_dead = dead_;\n  keep_order();\n  dead_ = &heap;",
           "  ThreadHeap* rest = dead_;\n  dead_ = &heap;\n  keep_order();\n  heap.next_dead = rest;"),
    Mutant("only_handlers_tell_of_a_fork", "src/base/process.cc", "if (os::empty_in_children(page, os::page_size()))",
           "if (false)"),
    Mutant("a_vforks_child_leaves_its_id", "src/base/process.cc",
           "  if (known_process->id == 0 || known_process->id == id_of_process()) my_name = name;", "  my_name = name;"),
    Mutant("remote_free_counted_again", "src/local/local_heap.cc", "set_size(chunk, g, 0);\n    ++freed;", "++freed;",
           (UNIT, LOCAL_STRESS)),
    Mutant("wrong_threads_place", "src/local/local_heap.cc", "return my_heap() == heap_ ? hm_local_tls_ : parked_;",
           "return hm_local_tls_;", (UNIT, LOCAL_STRESS)),
    Mutant("remote_free_taken_for_own", "src/local/local_heap.cc",
           "if (owner.heap() != my_heap()) {", "if (owner.heap() == nullptr) {", (UNIT, LOCAL_STRESS)),
]
