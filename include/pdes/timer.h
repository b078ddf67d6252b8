// Events that can be cancelled.  A model lists their type as cancellable, and sends, sets and handles the type itself:
//
//   using Context = pdes::Context<Packet, pdes::Cancellable<Timeout>>;
//   pdes::Timer timeout_;  // a member of the LP: the handle
//   context.set(timeout_, 1.0, Timeout{});
//   timeout_.cancel();
//
// What was cancelled stays pending until its time, takes its memory, and is executed by doing nothing
// (Activity::cancelled): so the order of events does not change, and no other event pays for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pdes {

template <class E>
struct Cancellable {
  E event;
  std::uint32_t place;  // of the timer, from the start of the LP's object; or kNoTimer
  std::uint32_t life;   // which setting of the timer this is
  static constexpr std::uint32_t kNoTimer = ~std::uint32_t{0};
};

// Set to one event at a time.  It stays in the LP that sets it, as a member or in one, and not in memory that the LP
// allocates; there is no limit to their number.  Once it has been set it must not be copied over another or exchanged with one:
// its event knows it by its place.
class Timer {
 public:
  // Whether an event is on its way, or would be if its time were not beyond the end.
  bool is_set() const noexcept { return set_ != 0; }
  // The event will not be handled.  Returns whether there was one.
  bool cancel() noexcept {
    const bool was_set = is_set();
    set_ = 0;
    return was_set;
  }

  // ---- For Context.  Returns which setting this is; the one before is cancelled.
  std::uint32_t set() noexcept {
    set_ = 1;
    return ++life_;
  }
  // Whether an event is to be handled; if so, its timer is no longer set.
  template <class E>
  static bool expires(void* object, const Cancellable<E>& event) noexcept {
    if (event.place == Cancellable<E>::kNoTimer) return true;
    Timer& timer = *reinterpret_cast<Timer*>(static_cast<std::byte*>(object) + event.place);
    return timer.life_ == event.life && timer.cancel();
  }

 private:
  std::uint32_t life_ = 0;  // wraps; what is compared with it is pending
  std::uint32_t set_ = 0;
};

}  // namespace pdes
