// How the object of an LP gets into a checkpoint and out of it again.  A class may
//   - be trivially copyable, without pointers and references: it is saved as its bytes, and says nothing;
//   - have `template <class A> void serialize(A& archive)` (pdes/archive.h), which names all that changes.  When a run goes
//     on, the object is made as for a new run, and then reads its values;
//   - say `static constexpr bool kCheckpoints = false`: then runs with a checkpoint are refused.
// Any other class does not compile: a run of days should not find out at its end.
#pragma once

#include <type_traits>

#include "pdes/archive.h"

namespace pdes {

// What a class of LPs says of its checkpoints.
struct Saving {
  void (*archive)(Archive&, void* object) = nullptr;  // null: cannot be saved
  const char* why_not = "";
};

template <class Object>
constexpr bool declines_checkpoints() noexcept {
  if constexpr (requires { Object::kCheckpoints; }) return !Object::kCheckpoints;
  else return false;
}

template <class Object>
constexpr Saving saving_of() noexcept {
  if constexpr (declines_checkpoints<Object>()) {
    return {nullptr, "its kCheckpoints is false"};
  } else if constexpr (Serializable<Object>) {
    return {[](Archive& archive, void* object) { static_cast<Object*>(object)->serialize(archive); }};
  } else {
    static_assert(
        std::is_trivially_copyable_v<Object>,
        "this LP class is not trivially copyable: give it template <class A> void serialize(A& archive), which names "
        "its members for checkpoints, or say static constexpr bool kCheckpoints = false");
    // Whoever cannot be assigned has a reference or a constant, which must not come from another process.
    if constexpr (!std::is_copy_assignable_v<Object>) return {nullptr, "it has a reference or a constant, and no serialize"};
    else return {[](Archive& archive, void* object) { archive.raw(object, sizeof(Object)); }};
  }
}

}  // namespace pdes
