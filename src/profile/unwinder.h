// Stacks by the tables that compilers write for exceptions (.eh_frame), as backtrace() takes them.  That works out anew for
// each frame where its caller's is; this remembers it for each return address, so that a stack that was met before takes a
// tenth of the time.
//
// On x86-64, with glibc 2.35 or later; elsewhere all is left to backtrace().
#pragma once
#include <cstdint>

#include "base/lock.h"
#include "profile/mapped_array.h"

struct dl_find_object;

namespace hm {

class Unwinder {
 public:
  // At the start of a profile.  If it fails, all is left to backtrace().
  void prepare() noexcept;
  // The calling thread's stack: return addresses, the innermost first, at most `most` of them.  Zero: ask backtrace(), which
  // knows signals' frames, code that registered its tables, and rarer kinds of tables; or another thread is in here, for
  // which nobody waits.
  size_t walk(uintptr_t* frames, size_t most) noexcept;
  // In the child of a fork.
  void repair(uint32_t before) noexcept;

  // What the tables say about a place in the code: where the caller's frame is.
  struct Rule {
    enum Kind : uint8_t { kUnknown, kBySp, kByBp, kOutermost };
    uintptr_t address = 0;            // of the place; 0: nothing is remembered here
    const uint8_t* tables = nullptr;  // of the object
    const uint8_t* entry = nullptr;   // in those tables, of the function
    size_t slot = 0;                  // where the sorted table has that entry
    uint64_t digest = 0;   // of what was read: another object may be there today, and its tables at the same place
    uint32_t read = 0;     // so many bytes of the entry
    int32_t frame = 0;     // from the register of this kind to where the caller's frame begins
    int32_t saved_bp = 0;  // from there to where the caller's bp is, if it is saved
    Kind kind = kUnknown;
    bool saves_bp = false;
  };

 private:
  static constexpr size_t kRules = 4096;  // that are remembered, each in the one place that its address names
  bool is_prepared() noexcept;
  const Rule& rule_of(uintptr_t address, dl_find_object& object) noexcept;

  Lock lock_;
  MappedArray<Rule> rules_;
  int (*find_object_)(void* place, dl_find_object* object) noexcept = nullptr;  // the C library's, if it has one
};
extern constinit Unwinder unwinder;

}  // namespace hm
