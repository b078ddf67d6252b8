// What all four approaches have in common.
#include "base/address_map.h"
#include "base/option_parser.h"
#include "baselines/vvmalloc/checked.h"
#include "baselines/vvmalloc/vvmalloc.h"

namespace hm::vvmalloc {
namespace {

bool is_ours(const void* address) noexcept { return AddressMap::kind(address_of(address)) == ChunkKind::kRegions; }

}  // namespace

const Block* checked(const void* payload, const char* function) noexcept {
  const Block* block = Block::of(payload);
  if (!is_ours(block) || address_of(payload) % kGranule != 0) die_on_misuse(function, payload, "not a block of vvmalloc");
  State state = block->header.state();
  if (state == State::kFree) die_on_misuse(function, payload, "is free: freed twice, or never handed out");
  if ((state != State::kUsed && state != State::kWhole) || block->size() < kMin || !is_ours(&block->footer()) ||
      block->footer() != block->header)
    die_on_misuse(function, payload, "no block starts here, or its end has been overwritten");
  return block;
}

size_t usable_size(const void* payload, const char* function) noexcept { return checked(payload, function)->capacity(); }

// New memory does, used memory does not, and a block does not show which it is.
bool comes_zeroed(const void*) noexcept { return false; }

// Allocate, copy, free: the lab's realloc.
void* resize(void*, size_t) noexcept { return nullptr; }

void write_counters(FdWriter& text) noexcept {
  Counters now = counters();
  text << ",\"heap_wait_ns\":" << now.heap_wait_ns << ",\"queue_wait_ns\":" << now.queue_wait_ns
       << ",\"heap_lock_ns\":" << now.heap_lock_ns << ",\"extensions\":" << now.extensions
       << ",\"enqueues\":" << now.enqueues << ",\"dequeues\":" << now.dequeues << ",\"retries\":" << now.retries;
}

// There are no options; this warns of variables that look like one.
void start() noexcept { read_options({.prefix = "VVMALLOC_", .rows = nullptr, .count = 0}); }

}  // namespace hm::vvmalloc
