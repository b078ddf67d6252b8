#include "guard/guarded_place.h"

#include <algorithm>

#include "base/process.h"
#include "base/report.h"
#include "base/slots.h"
#include "profile/mapped_array.h"
#include "profile/mappings.h"

namespace hm {
namespace {

constinit MappedArray<Mapping> mapping;  // one; too large for a signal's stack
std::atomic<bool> describing{false};     // relaxed: who comes second at the same time leaves the files out

// What lies inside the allocator is left out.
void keep(CallTrace& trace, uintptr_t* all, size_t n, const void* caller) noexcept {
  uintptr_t* first = std::find(all, all + n, address_of(caller));
  if (first == all + n) first = all;
  trace.count = static_cast<uint32_t>(std::min(static_cast<size_t>(all + n - first), CallTrace::kFrames));
  move_slots(trace.frames, first, trace.count);
  trace.thread = my_thread_id();
}

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

void print(const char* what, const CallTrace& trace, bool with_files) noexcept {
  { FdWriter(2) << "  " << what << " by thread " << uint64_t{trace.thread} << (trace.count == 0 ? "\n" : ", from\n"); }
  for (size_t i = 0; i < std::min<size_t>(trace.count, CallTrace::kFrames); ++i) print_frame(i, trace.frames[i], with_files);
}

}  // namespace

void CallTrace::take_allocation(const void* caller) noexcept {
  uintptr_t all[kMostFrames];
  keep(*this, all, stack_of_allocation(all, caller), caller);
}

void CallTrace::take_free(const void* caller) noexcept {
  uintptr_t all[kMostFrames];
  keep(*this, all, stack_of_free(all, caller), caller);
}

bool prepare_descriptions() noexcept { return mapping.reserve(1); }

void describe(const GuardedPlace& place) noexcept {
  bool alone = !describing.exchange(true, std::memory_order_relaxed);
  if (place.state() != GuardedPlace::kLive) print("freed", place.freed, alone);
  print("allocated", place.allocated, alone);
  if (alone) describing.store(false, std::memory_order_relaxed);
}

}  // namespace hm
