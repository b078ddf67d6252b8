// libhmalloc-record.so: the malloc family; passes each call on to the next allocator and records it.
//
// The recorded calls of a thread do not nest.  Calls that an allocator makes inside its own functions are not recorded,
// and neither is a signal handler that allocates in the middle of a call, so nothing here can be interrupted half-way
// by itself.  Blocks from such calls, freed later, count as foreign.
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "session.h"

#define HM_EXPORT extern "C" __attribute__((visibility("default")))

namespace hm::trace {
namespace {

// The allocator that does the work.
struct Next {
  decltype(&::malloc) malloc;
  decltype(&::free) free;
  decltype(&::calloc) calloc;
  decltype(&::realloc) realloc;
  decltype(&::posix_memalign) posix_memalign;
  decltype(&::aligned_alloc) aligned_alloc;
  decltype(&::memalign) memalign;
  decltype(&::valloc) valloc;
  decltype(&::pvalloc) pvalloc;
};
constinit Next next{};
constinit std::atomic<bool> next_is_known{false};

constinit thread_local bool inside = false;

// Looking up the next allocator may itself allocate: from here, once, and never freed.
alignas(16) constinit char bootstrap[16 << 10]{};
constinit std::atomic<size_t> bootstrap_used{0};

void* bootstrap_allocate(size_t size) {
  size_t begin = bootstrap_used.fetch_add((size + 15) & ~size_t{15});
  return begin + size <= sizeof bootstrap ? bootstrap + begin : nullptr;
}

bool is_bootstrap(const void* block) {
  auto address = reinterpret_cast<uintptr_t>(block);
  auto begin = reinterpret_cast<uintptr_t>(bootstrap);
  return address >= begin && address < begin + sizeof bootstrap;
}

template <class Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Threads that do this at the same time find the same.  False if called from within the lookup.
bool look_up() {
  if (inside) return false;
  inside = true;
  find(next.malloc, "malloc");
  find(next.free, "free");
  find(next.calloc, "calloc");
  find(next.realloc, "realloc");
  find(next.posix_memalign, "posix_memalign");
  find(next.aligned_alloc, "aligned_alloc");
  find(next.memalign, "memalign");
  find(next.valloc, "valloc");
  find(next.pvalloc, "pvalloc");
  next_is_known.store(true, std::memory_order_release);
  inside = false;
  return true;
}

inline bool is_ready() { return next_is_known.load(std::memory_order_acquire) || look_up(); }

// One call by the program: only a thread's outermost call is recorded.
class Recorded {
 public:
  Recorded() : is_outermost_(!inside) { inside = true; }
  ~Recorded() {
    if (is_outermost_) inside = false;
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  void ends(Call call, const void* block) {
    if (is_outermost_) record(call, block);
  }
  void* made(Call call, void* block, size_t size, size_t alignment = 1) {
    bool counts = block != nullptr || call == Call::kReallocNew;
    if (is_outermost_ && counts) record(call, block, size, static_cast<unsigned>(std::bit_width(alignment - 1)));
    return block;
  }

 private:
  bool is_outermost_;
};

void* out_of_memory() {
  errno = ENOMEM;
  return nullptr;
}

// The block is at the start of the buffer's unused rest, so the bytes behind it are readable too.
void* move_from_bootstrap(void* block, size_t size) {
  void* moved = malloc(size);
  size_t room = static_cast<size_t>(bootstrap + sizeof bootstrap - static_cast<char*>(block));
  if (moved != nullptr) memcpy(moved, block, size < room ? size : room);
  return moved;
}

}  // namespace
}  // namespace hm::trace

using namespace hm::trace;

HM_EXPORT void* malloc(size_t size) noexcept {
  if (!is_ready()) return bootstrap_allocate(size);
  Recorded recorded;
  return recorded.made(Call::kMalloc, next.malloc(size), size);
}

HM_EXPORT void free(void* block) noexcept {
  if (block == nullptr || is_bootstrap(block) || !is_ready()) return;
  Recorded recorded;
  recorded.ends(Call::kFree, block);
  next.free(block);
}

HM_EXPORT void* calloc(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  if (!is_ready()) return bootstrap_allocate(bytes);
  Recorded recorded;
  return recorded.made(Call::kCalloc, next.calloc(count, size), bytes);
}

HM_EXPORT void* realloc(void* block, size_t size) noexcept {
  if (block == nullptr) return malloc(size);
  if (is_bootstrap(block)) return move_from_bootstrap(block, size);
  Recorded recorded;
  recorded.ends(Call::kReallocOld, block);
  return recorded.made(Call::kReallocNew, next.realloc(block, size), size);
}

HM_EXPORT void* reallocarray(void* block, size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  return realloc(block, bytes);
}

HM_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  if (!is_ready()) return ENOMEM;
  Recorded recorded;
  int error = next.posix_memalign(out, alignment, size);
  if (error == 0) recorded.made(Call::kAligned, *out, size, alignment);
  return error;
}

HM_EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept {
  if (!is_ready()) return out_of_memory();
  Recorded recorded;
  return recorded.made(Call::kAligned, next.aligned_alloc(alignment, size), size, alignment);
}

HM_EXPORT void* memalign(size_t alignment, size_t size) noexcept {
  if (!is_ready()) return out_of_memory();
  Recorded recorded;
  return recorded.made(Call::kAligned, next.memalign(alignment, size), size, alignment);
}

HM_EXPORT void* valloc(size_t size) noexcept {
  if (!is_ready()) return out_of_memory();
  Recorded recorded;
  return recorded.made(Call::kAligned, next.valloc(size), size, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

HM_EXPORT void* pvalloc(size_t size) noexcept {
  if (!is_ready()) return out_of_memory();
  Recorded recorded;
  return recorded.made(Call::kAligned, next.pvalloc(size), size, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

// From C23.  The sizes are hints, which the next allocator may not accept.
HM_EXPORT void free_sized(void* block, size_t) noexcept { free(block); }
HM_EXPORT void free_aligned_sized(void* block, size_t, size_t) noexcept { free(block); }
