// What an LP sees of the simulation while it handles an event.  A model names its event types once:
//
//   using Context = pdes::Context<Arrival, Departure>;
//
// and its LPs have a handler `void on(Context&, const Arrival&)` for each that they may get.
#pragma once

#include <cstddef>
#include <type_traits>

#include "pdes/injected.h"
#include "pdes/partition.h"
#include "pdes/timer.h"
#include "pdes/vacancies.h"

namespace pdes {

// How a type is sent and handled that is listed as Listed.
template <class Listed>
struct SentAs {
  using Event = Listed;
};
template <class E>
struct SentAs<Cancellable<E>> {
  using Event = E;
};
template <class E>
struct SentAs<Makes<E>> {
  using Event = E;
};

// Events are copied as bytes, into blocks, between machines and into checkpoints.
template <class Listed>
struct EventPayload {
  static_assert(std::is_trivially_copyable_v<typename SentAs<Listed>::Event>,
                "this event type is not trivially copyable: events are copied as bytes, so give it numbers and arrays, and "
                "leave strings and vectors in an LP");
  static_assert(alignof(Listed) <= 8, "this event type needs an alignment above 8");
  static_assert(sizeof(Listed) <= kMaxPayload, "this event type is larger than 32,760 bytes");
  static constexpr bool kChecked = true;
};

template <class... Events>
class Context {
  static_assert((EventPayload<Events>::kChecked && ...));
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
  Stream stream(std::uint32_t number) const noexcept { return partition_.stream(lp_, number); }
  Random random(Stream& own) noexcept { return Random(own, partition_.world.generator); }

  // Sends an event that LP `to` executes at now + delay.  The delay must be finite, and to another LP at least the
  // lookahead, to itself at least 0; otherwise the run ends with an Error.  Events at or after the end are dropped.
  template <class E>
  void send(LpId to, Time delay, const E& event, Priority priority = 0) {
    static_assert(std::is_same_v<typename SentAs<E>::Event, E>,
                  "send the event itself, without pdes::Cancellable or pdes::Makes");
    post(to, delay, as_listed(event), priority);
  }
  template <class E>
  void send_self(Time delay, const E& event, Priority priority = 0) {
    send(lp_.id, delay, event, priority);
  }
  // Sends it to the LP itself, unless the timer, a member of the LP, is cancelled or set anew before (timer.h).
  template <class E>
  void set(Timer& timer, Time delay, const E& event, Priority priority = 0) {
    static_assert(kCancellable<E>, "this event type is not in the Context's list as pdes::Cancellable");
    const std::uint32_t place = partition_.place_of_timer(lp_, &timer);
    post(lp_.id, delay, Cancellable<E>{event, place, timer.set()}, priority);
  }
  // The run ends at now + delay, unless it ends earlier: events before that time are executed, on all threads.  The delay
  // must be at least the lookahead.
  void end_after(Time delay) { partition_.end_after(lp_, delay); }
  // This LP, one of Simulation::add_vacant, reports and ends when its handler returns (vacancies.h).
  void vacate() { partition_.vacate(lp_); }

  static std::vector<EventType> types() {
    return {EventType{sizeof(Events), type_name(typeid(typename SentAs<Events>::Event))}...};
  }
  // Its address identifies the list of types: all LP classes of a simulation must have the same.
  static constexpr char kName = 0;

  // An event for LP `to` from outside (Simulation::inject).
  template <class E>
  static Injected from_outside(LpId to, const E& event, Priority priority) {
    return packed(to, as_listed(event), priority);
  }

  template <class Object>
  static const Handler* handlers() noexcept {
    static constexpr Handler kTable[] = {&handle<Object, Events>...};
    return kTable;
  }
  // Of LPs that come and go: while one is there, and while nobody is.
  template <class Object>
  static const Handler* passing_handlers() noexcept {
    static constexpr Handler kTable[] = {&handle_passing<Object, Events>...};
    return kTable;
  }
  template <class Object>
  static const Handler* vacant_handlers() noexcept {
    static_assert((kMakes<Object, Events> || ...),
                  "nothing makes these LPs: list an event type as pdes::Makes, and give them an on for it");
    static constexpr Handler kTable[] = {&handle_vacant<Object, Events>...};
    return kTable;
  }

 private:
  template <class E>
  static constexpr bool kCancellable = (std::is_same_v<Cancellable<E>, Events> || ...);
  template <class Object, class E>
  static constexpr bool kHandles = requires(Object& object, Context& context, const E& event) { object.on(context, event); };
  // Whether what is listed so makes LPs of that class.
  template <class Object, class Listed>
  static constexpr bool kMakes =
      std::is_same_v<Listed, Makes<typename SentAs<Listed>::Event>> && kHandles<Object, typename SentAs<Listed>::Event>;
  template <class E>
  static decltype(auto) as_listed(const E& event) {
    if constexpr (kCancellable<E>) return Cancellable<E>{event, Cancellable<E>::kNoTimer, 0};
    else if constexpr ((std::is_same_v<Makes<E>, Events> || ...)) return Makes<E>{event};
    else return (event);
  }
  template <class Listed>
  void post(LpId to, Time delay, const Listed& event, Priority priority) {
    static_assert((std::is_same_v<Listed, Events> || ...), "this event type is not in the Context's list");
    partition_.send<Listed>(lp_, to, delay, kIndex<Listed>, event, priority);
  }
  template <class Listed>
  static Injected packed(LpId to, const Listed& event, Priority priority) {
    static_assert((std::is_same_v<Listed, Events> || ...), "this event type is not in the Context's list");
    const auto* bytes = reinterpret_cast<const std::byte*>(&event);
    return {0, to, kIndex<Listed>, priority, {bytes, bytes + sizeof event}};
  }
  template <class E>
  static constexpr std::uint16_t kIndex = [] {
    std::uint16_t index = 0;
    (void)((std::is_same_v<E, Events> ? true : (++index, false)) || ...);
    return index;
  }();

  template <class Object, class Listed>
  static void handle(Partition& partition, Lp& lp, const Event& event) {
    using E = typename SentAs<Listed>::Event;
    if constexpr (std::is_same_v<Listed, Makes<E>>) {
      partition.refuse_to_make(lp, event);
    } else if constexpr (kHandles<Object, E>) {
      Context context(partition, lp);
      Object& object = *static_cast<Object*>(lp.object());
      const auto& payload = *static_cast<const Listed*>(event.payload());
      if constexpr (std::is_same_v<Listed, E>) object.on(context, payload);
      else if (Timer::expires(&object, payload)) object.on(context, payload.event);
      else ++partition.counts.cancelled;
    } else {
      partition.no_handler(lp, event);
    }
  }
  template <class Object, class Listed>
  static void handle_passing(Partition& partition, Lp& lp, const Event& event) {
    if (partition.is_of_another_life(lp)) {
      ++partition.counts.undelivered;
    } else {
      handle<Object, Listed>(partition, lp, event);
      partition.end_if_asked(lp);
    }
  }
  template <class Object, class Listed>
  static void handle_vacant(Partition& partition, Lp& vacant, const Event& event) {
    if constexpr (kMakes<Object, Listed>) {
      if (!partition.is_own(vacant)) {
        Lp& lp = partition.make(vacant);
        Context context(partition, lp);
        static_cast<Object*>(lp.object())->on(context, static_cast<const Listed*>(event.payload())->event);
        return partition.end_if_asked(lp);
      }
    }
    partition.to_nobody(vacant, event);
  }

  Partition& partition_;
  Lp& lp_;
};

}  // namespace pdes
