#include "profile/call_trace.h"

#include <algorithm>
#include <atomic>

#include "base/process.h"
#include "base/report.h"
#include "base/slots.h"
#include "profile/mapped_array.h"
#include "profile/mappings.h"

namespace hm {
namespace {

constinit MappedArray<Mapping> mapping;  // one; too large for a signal's stack
std::atomic<bool> printing{false};       // relaxed: who comes second at the same time leaves the files out

// As addr2line wants it: the file, and where in it.
void print_frame(size_t number, uintptr_t address, bool with_file) noexcept {
  FdWriter line(2);
  line << "    #" << uint64_t{number} << " " << reinterpret_cast<const void*>(address);
  if (with_file)
    for (Mappings all; all.next(mapping[0]);) {
      if (address < mapping[0].start || address >= mapping[0].end) continue;
      line << " " << mapping[0].file << "+" << reinterpret_cast<const void*>(address - mapping[0].start + mapping[0].offset);
      break;
    }
  line << "\n";
}

}  // namespace

size_t frames_inside(std::span<const uintptr_t> all, const void* caller) noexcept {
  auto first = std::find(all.begin(), all.end(), address_of(caller));
  return first == all.end() ? 0 : static_cast<size_t>(first - all.begin());
}

void CallTrace::keep(std::span<uintptr_t> all, uint32_t thread_id) noexcept {
  count = static_cast<uint32_t>(std::min(all.size(), kFrames));
  move_slots(frames, all.data(), count);
  thread = thread_id;
}

void CallTrace::take_allocation(const void* caller) noexcept {
  uintptr_t all[kMostFrames];
  std::span<uintptr_t> taken(all, stack_of_allocation(all, caller));
  keep(taken.subspan(frames_inside(taken, caller)), my_thread_id());
}

void CallTrace::take_free(const void* caller) noexcept {
  uintptr_t all[kMostFrames];
  std::span<uintptr_t> taken(all, stack_of_free(all, caller));
  keep(taken.subspan(frames_inside(taken, caller)), my_thread_id());
}

void print(const char* what, const CallTrace& trace) noexcept {
  bool alone = !printing.exchange(true, std::memory_order_relaxed);
  bool with_files = alone && mapping.reserve(1);
  { FdWriter(2) << "  " << what << " by thread " << uint64_t{trace.thread} << (trace.count == 0 ? "\n" : ", from\n"); }
  for (size_t i = 0; i < std::min<size_t>(trace.count, CallTrace::kFrames); ++i) print_frame(i, trace.frames[i], with_files);
  if (alone) printing.store(false, std::memory_order_relaxed);
}

}  // namespace hm
