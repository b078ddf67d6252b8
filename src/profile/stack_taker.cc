#include "profile/stack_taker.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "profile/mapped_array.h"
#include "profile/mappings.h"
#include "profile/unwinder.h"

// Of glibc; not in musl.
extern "C" [[gnu::weak]] int backtrace(void** buffer, int size);

namespace hm {
namespace {

// The unwinder may allocate, where a program has registered frames with it.
constinit thread_local bool unwinding = false;

size_t take_stack(uintptr_t* frames) noexcept {
  if (backtrace == nullptr || unwinding) return 0;
  unwinding = true;
  size_t n = unwinder.walk(frames, kMostFrames);
  if (n == 0)
    n = static_cast<size_t>(std::max(backtrace(reinterpret_cast<void**>(frames), static_cast<int>(kMostFrames)), 0));
  unwinding = false;
  return n;
}

// Code that may hold a lock when it allocates or frees.  Relaxed: two threads may start a profile at once, and find the same.
class Code {
 public:
  void set(const Mapping& mapping) noexcept {
    start_.store(mapping.start, std::memory_order_relaxed);
    end_.store(mapping.end, std::memory_order_relaxed);
  }
  bool has(const void* address) const noexcept {
    return start_.load(std::memory_order_relaxed) <= address_of(address) &&
           address_of(address) < end_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uintptr_t> start_{0}, end_{0};
};
// The unwinder would want that lock again (frames that a program has registered).  The loader frees what describes an object
// that it has just unmapped.
constinit Code libgcc, loader;

bool starts_with_name(const char* file, const char* name) noexcept {  // behind the last slash
  const char* last = file;
  for (; *file != '\0'; ++file)
    if (*file == '/') last = file + 1;
  for (; *name != '\0'; ++name, ++last)
    if (*name != *last) return false;
  return true;
}

}  // namespace

int prepare_stacks() noexcept {
  uintptr_t frames[kMostFrames];
  if (take_stack(frames) == 0) return ENOTSUP;
  unwinder.prepare();
  MappedArray<Mapping> mapping;
  if (!mapping.reserve(1)) return ENOMEM;
  for (Mappings all; all.next(mapping[0]);) {
    if (starts_with_name(mapping[0].file, "libgcc_s")) libgcc.set(mapping[0]);
    if (starts_with_name(mapping[0].file, "ld-")) loader.set(mapping[0]);
  }
  mapping.clear();
  return 0;
}

size_t stack_of_allocation(uintptr_t* frames, const void* caller) noexcept {
  return libgcc.has(caller) ? 0 : take_stack(frames);
}

size_t stack_of_free(uintptr_t* frames, const void* caller) noexcept {
  return libgcc.has(caller) || loader.has(caller) ? 0 : take_stack(frames);
}

}  // namespace hm
