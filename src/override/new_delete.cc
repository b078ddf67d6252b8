// Every form of C++ new and delete.  libstdc++ is not needed: if a program has it, its new_handler and bad_alloc are
// looked up when an allocation fails; if it has not, nobody could catch an exception, and the program ends.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/report.h"
#include "override/allocator.h"  // IWYU pragma: keep (a baseline has the same names in its own)

using namespace hm;

#define HM_EXPORT __attribute__((visibility("default")))
#define HM_WEAK __attribute__((weak))

// Needed for catching, the last by what clang generates for noexcept.  Without libstdc++ nothing is thrown, so none is missed.
asm(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n.weak _Unwind_Resume\n"
    ".weak _ZSt9terminatev");

extern "C" {
// std::get_new_handler() and std::__throw_bad_alloc() of libstdc++, under their link names.
HM_WEAK std::new_handler _ZSt15get_new_handlerv();  // NOLINT(bugprone-reserved-identifier)
HM_WEAK void _ZSt17__throw_bad_allocv();            // NOLINT(bugprone-reserved-identifier)
HM_WEAK void* dlopen(const char*, int) noexcept;
HM_WEAK void* dlsym(void*, const char*) noexcept;
}

namespace {

// The weak symbol is bound if the program itself links libstdc++; a plugin may have loaded it later.
template <class Function>
Function* from_libstdcxx(Function* bound, const char* name) {
  if (bound != nullptr || dlopen == nullptr || dlsym == nullptr) return bound;
  void* library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

std::new_handler handler() {
  auto* get = from_libstdcxx(_ZSt15get_new_handlerv, "_ZSt15get_new_handlerv");
  return get == nullptr ? nullptr : get();
}

[[noreturn]] void no_memory(size_t size) {
  if (auto* raise = from_libstdcxx(_ZSt17__throw_bad_allocv, "_ZSt17__throw_bad_allocv")) raise();
  FdWriter(2) << kLibraryName << ": operator new(" << uint64_t{size} << "): out of memory, and nobody to catch it\n";
  abort();
}

// The loop that the standard asks for: call the handler until it has made room or there is none.
HM_COLD void* retry(size_t size, size_t alignment) {
  for (;;) {
    std::new_handler make_room = handler();
    if (make_room == nullptr) no_memory(size);
    make_room();
    if (void* block = front::allocate_aligned(alignment, size)) return block;
  }
}

// A handler may throw bad_alloc; the nothrow forms turn that into null.
HM_COLD void* retry_nothrow(size_t size, size_t alignment) noexcept {
  for (;;) {
    std::new_handler make_room = handler();
    if (make_room == nullptr) return nullptr;
    try {
      make_room();
    } catch (...) { return nullptr; }
    if (void* block = front::allocate_aligned(alignment, size)) return block;
  }
}

inline void* make(size_t size) {
  void* block = front::allocate(size);
  return HM_LIKELY(block != nullptr) ? block : retry(size, kGranule);
}
inline void* make(size_t size, std::align_val_t alignment) {
  void* block = front::allocate_aligned(static_cast<size_t>(alignment), size);
  return HM_LIKELY(block != nullptr) ? block : retry(size, static_cast<size_t>(alignment));
}
inline void* make_nothrow(size_t size) noexcept {
  void* block = front::allocate(size);
  return HM_LIKELY(block != nullptr) ? block : retry_nothrow(size, kGranule);
}
inline void* make_nothrow(size_t size, std::align_val_t alignment) noexcept {
  void* block = front::allocate_aligned(static_cast<size_t>(alignment), size);
  return HM_LIKELY(block != nullptr) ? block : retry_nothrow(size, static_cast<size_t>(alignment));
}
[[gnu::always_inline]] inline void drop(void* block) noexcept { front::deallocate(block, "operator delete"); }
[[gnu::always_inline]] inline void drop(void* block, size_t size, size_t alignment = kGranule) noexcept {
  if constexpr (kChecked) front::check_size(block, size, alignment, "operator delete");
  front::deallocate(block, "operator delete");
}

}  // namespace

using std::align_val_t;
using std::nothrow_t;

HM_EXPORT void* operator new(size_t n) { return make(n); }
HM_EXPORT void* operator new[](size_t n) { return make(n); }
HM_EXPORT void* operator new(size_t n, const nothrow_t&) noexcept { return make_nothrow(n); }
HM_EXPORT void* operator new[](size_t n, const nothrow_t&) noexcept { return make_nothrow(n); }
HM_EXPORT void* operator new(size_t n, align_val_t a) { return make(n, a); }
HM_EXPORT void* operator new[](size_t n, align_val_t a) { return make(n, a); }
HM_EXPORT void* operator new(size_t n, align_val_t a, const nothrow_t&) noexcept { return make_nothrow(n, a); }
HM_EXPORT void* operator new[](size_t n, align_val_t a, const nothrow_t&) noexcept { return make_nothrow(n, a); }

HM_EXPORT void operator delete(void* p) noexcept { drop(p); }
HM_EXPORT void operator delete[](void* p) noexcept { drop(p); }
HM_EXPORT void operator delete(void* p, const nothrow_t&) noexcept { drop(p); }
HM_EXPORT void operator delete[](void* p, const nothrow_t&) noexcept { drop(p); }
HM_EXPORT void operator delete(void* p, size_t n) noexcept { drop(p, n); }
HM_EXPORT void operator delete[](void* p, size_t n) noexcept { drop(p, n); }
HM_EXPORT void operator delete(void* p, align_val_t) noexcept { drop(p); }
HM_EXPORT void operator delete[](void* p, align_val_t) noexcept { drop(p); }
HM_EXPORT void operator delete(void* p, align_val_t, const nothrow_t&) noexcept { drop(p); }
HM_EXPORT void operator delete[](void* p, align_val_t, const nothrow_t&) noexcept { drop(p); }
HM_EXPORT void operator delete(void* p, size_t n, align_val_t a) noexcept { drop(p, n, static_cast<size_t>(a)); }
HM_EXPORT void operator delete[](void* p, size_t n, align_val_t a) noexcept { drop(p, n, static_cast<size_t>(a)); }
