// What an LP sees of the simulation while it handles an event.  A model names its event types once:
//
//   using Context = pdes::Context<Arrival, Departure>;
//
// and its LPs have a handler `void on(Context&, const Arrival&)` for each that they may get.
#pragma once

#include <cstddef>
#include <type_traits>

#include "pdes/partition.h"

namespace pdes {

// Events are copied as bytes, into blocks and between machines.
template <class E>
concept EventPayload =
    std::is_trivially_copyable_v<E> && std::is_trivially_destructible_v<E> && alignof(E) <= 8 && sizeof(E) <= kMaxPayload;

template <EventPayload... Events>
class Context {
  static_assert(sizeof...(Events) > 0 && sizeof...(Events) < 256);

 public:
  Context(Partition& partition, Lp& lp) noexcept : partition_(partition), lp_(lp) {}

  Time now() const noexcept { return partition_.now; }
  LpId id() const noexcept { return lp_.id; }
  LpId lp_count() const noexcept { return partition_.world.lp_count; }  // the total number of LPs
  Time lookahead() const noexcept { return partition_.world.lookahead; }
  Time end() const noexcept { return partition_.world.end; }

  // This LP's own stream of random numbers, the same for any partition.
  Random random() noexcept { return Random(lp_.stream, partition_.world.generator); }
  // A further stream, number 1, 2, ..., which the LP must keep; and the numbers of such a stream.
  Stream stream(std::uint32_t number) const noexcept { return Stream(partition_.world.seed, lp_.id, number); }
  Random random(Stream& own) noexcept { return Random(own, partition_.world.generator); }

  // Sends an event that LP `to` executes at now + delay.  The delay to another LP must be at least the lookahead, to
  // itself at least 0; otherwise the run ends with an Error.  Events at or after the end are dropped.
  template <class E>
  void send(LpId to, Time delay, const E& event, Priority priority = 0) {
    static_assert((std::is_same_v<E, Events> || ...), "this event type is not in the Context's list");
    partition_.send<E>(lp_, to, delay, kIndex<E>, event, priority);
  }
  template <class E>
  void send_self(Time delay, const E& event, Priority priority = 0) {
    send(lp_.id, delay, event, priority);
  }

  static std::vector<EventType> types() { return {EventType{sizeof(Events), type_name(typeid(Events))}...}; }
  // Its address identifies the list of types: all LP classes of a simulation must have the same.
  static constexpr char kName = 0;

  template <class Object>
  static const Handler* handlers() noexcept {
    static constexpr Handler kTable[] = {&handle<Object, Events>...};
    return kTable;
  }

 private:
  template <class E>
  static constexpr std::uint16_t kIndex = [] {
    std::uint16_t index = 0;
    (void)((std::is_same_v<E, Events> ? true : (++index, false)) || ...);
    return index;
  }();

  template <class Object, class E>
  static void handle(Partition& partition, Lp& lp, const Event& event) {
    if constexpr (requires(Object& object, Context& context, const E& payload) { object.on(context, payload); }) {
      Context context(partition, lp);
      static_cast<Object*>(lp.object())->on(context, *static_cast<const E*>(event.payload()));
    } else {
      partition.no_handler(lp, event);
    }
  }

  Partition& partition_;
  Lp& lp_;
};

}  // namespace pdes
