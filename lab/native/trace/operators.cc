// C++ new and delete, for allocators that define these beside malloc, which otherwise would not be recorded.  Here they
// are malloc and free; out of memory, the next allocator's operators call the new_handler and throw.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#define HM_EXPORT __attribute__((visibility("default")))

using std::align_val_t;
using std::nothrow_t;

namespace {

template <class... Arguments>
void* next_new(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<void* (*)(Arguments...)>(dlsym(RTLD_NEXT, name));
  if (function == nullptr) abort();  // a program without libstdc++ cannot catch anything
  return function(arguments...);
}

void* make(size_t size) { return malloc(size); }
void* make(size_t size, align_val_t alignment) {
  void* block = nullptr;
  size_t least = std::max(static_cast<size_t>(alignment), sizeof(void*));
  return posix_memalign(&block, least, size) == 0 ? block : nullptr;
}

}  // namespace

#define HM_NEW(link_name, parameters, make_call, ...)                   \
  HM_EXPORT void* operator parameters {                                 \
    void* block = make_call;                                            \
    return block != nullptr ? block : next_new(link_name, __VA_ARGS__); \
  }
HM_NEW("_Znwm", new(size_t n), make(n), n)
HM_NEW("_Znam", new[](size_t n), make(n), n)
HM_NEW("_ZnwmRKSt9nothrow_t", new(size_t n, const nothrow_t& t) noexcept, make(n), n, &t)
HM_NEW("_ZnamRKSt9nothrow_t", new[](size_t n, const nothrow_t& t) noexcept, make(n), n, &t)
HM_NEW("_ZnwmSt11align_val_t", new(size_t n, align_val_t a), make(n, a), n, a)
HM_NEW("_ZnamSt11align_val_t", new[](size_t n, align_val_t a), make(n, a), n, a)
HM_NEW("_ZnwmSt11align_val_tRKSt9nothrow_t", new(size_t n, align_val_t a, const nothrow_t& t) noexcept, make(n, a), n, a, &t)
HM_NEW("_ZnamSt11align_val_tRKSt9nothrow_t", new[](size_t n, align_val_t a, const nothrow_t& t) noexcept, make(n, a), n, a,
       &t)
#undef HM_NEW

HM_EXPORT void operator delete(void* p) noexcept { free(p); }
HM_EXPORT void operator delete[](void* p) noexcept { free(p); }
HM_EXPORT void operator delete(void* p, const nothrow_t&) noexcept { free(p); }
HM_EXPORT void operator delete[](void* p, const nothrow_t&) noexcept { free(p); }
HM_EXPORT void operator delete(void* p, size_t) noexcept { free(p); }
HM_EXPORT void operator delete[](void* p, size_t) noexcept { free(p); }
HM_EXPORT void operator delete(void* p, align_val_t) noexcept { free(p); }
HM_EXPORT void operator delete[](void* p, align_val_t) noexcept { free(p); }
HM_EXPORT void operator delete(void* p, align_val_t, const nothrow_t&) noexcept { free(p); }
HM_EXPORT void operator delete[](void* p, align_val_t, const nothrow_t&) noexcept { free(p); }
HM_EXPORT void operator delete(void* p, size_t, align_val_t) noexcept { free(p); }
HM_EXPORT void operator delete[](void* p, size_t, align_val_t) noexcept { free(p); }
