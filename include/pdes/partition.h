// What one thread owns (in ROSS: a PE): its LPs, their pending events, the events on their way to other threads.  This
// is the engine's hot path: an LP's handler calls send(), run_until() executes.
//
// Only the owning thread uses anything here, with two exceptions.  The first thread uses all while the others sleep
// (engine/gathering.h).  The owner fills the outboxes of one parity during a window, and the threads they are addressed to
// empty them during the next one.  A barrier between the two windows orders the two (engine/windows.cc).
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "pdes/event_memory.h"
#include "pdes/injected.h"
#include "pdes/lp.h"
#include "pdes/options.h"
#include "pdes/report.h"
#include "pdes/timing_wheel.h"
#include "pdes/waits.h"

namespace pdes {

class CriticalPath;
class DelayRecorder;
class LinkRecorder;
class EventTimer;
struct Checkpoint;
struct Counted;
struct Lived;
std::string type_name(const std::type_info& type);

// What all threads of a rank know; constant while the simulation runs.
struct World {
  LpId lp_count = 0;
  Time end = 0, lookahead = 0;
  std::uint64_t seed = 0;
  Generator generator = Generator::splitmix;
  Ties ties = Ties::by_source;
  std::vector<EventType> types;
  std::vector<LpClass> classes;
  std::vector<std::uint16_t> owner;  // partition of each LP; partitions are numbered over all ranks
  std::unique_ptr<Lp*[]> lps;        // of this rank; null elsewhere
  unsigned first_partition = 0;      // of this rank
  bool lps_travel = false;           // to other ranks: each has memory of its own

  const LpClass& class_of(LpId id) const noexcept;
};

struct Counts {
  std::uint64_t sent = 0, crossed = 0, dropped = 0, cancelled = 0;
  std::uint64_t made = 0, ended = 0, undelivered = 0;  // LPs that come and go; events for none of them
};

// What lies before the record of an LP that comes and goes.  While it is there, World::lps has that record, which takes over
// from the one that the id has while nobody is there, and hands back to it.
struct alignas(16) Life {
  Event block;         // so that it comes from where events come from
  std::uint32_t born;  // sequence number of the id then
  bool leaves;         // when the handler returns
  bool long_lived;     // it has sent so much that sequence numbers no longer tell what was sent before
  Lp* vacant;
  std::uint64_t digest;  // of the id then, by which its further streams of random numbers differ from those of others there
  Lp& lp() noexcept { return *reinterpret_cast<Lp*>(this + 1); }
  static Life& of(Lp& lp) noexcept { return reinterpret_cast<Life*>(&lp)[-1]; }
};

class alignas(128) Partition {
 public:
  Partition(const World& world, const Options& options, unsigned number, unsigned partitions);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  // ---- For handlers.
  template <class E>
  [[gnu::always_inline]] void send(Lp& from, LpId to, Time delay, std::uint16_t type, const E& payload, Priority priority) {
    send_bytes(from, to, delay, type, &payload, sizeof(E), priority);
  }
  [[gnu::always_inline]] void send_bytes(Lp& from, LpId to, Time delay, std::uint16_t type, const void* payload,
                                         std::size_t size, Priority priority) {
    check(from, to, delay, type, priority);
    Time time = now + delay;
    std::uint64_t tie = next_tie(from, priority);
    if (!(time < world.end)) [[unlikely]] {
      if (!(time < kNever)) [[unlikely]]
        throw_bad_send(from, to, kNever, type);
      ++counts.dropped;
      return;
    }
    Event* event = new_event(to, type, payload, size);
    if (event == nullptr) [[unlikely]]
      no_memory();
    post(from, {time, tie, event});
  }
  // What is wrong with this send.  `to` is any number.
  [[noreturn]] void throw_bad_send(const Lp& from, std::int64_t to, Time delay, std::uint16_t type) const;
  [[noreturn]] void no_handler(const Lp& lp, const Event& event) const;
  // An event of Simulation::inject, the index-th of the run, in a block.
  Key from_outside(const Injected& given, std::uint64_t index);
  // The run ends at now + delay, unless it ends earlier.
  void end_after(const Lp& from, Time delay);
  // A further stream of random numbers of an LP.
  Stream stream(Lp& lp, std::uint32_t stream_number) const noexcept;
  // Where in its object an LP has its timer.  Throws if it is elsewhere.
  std::uint32_t place_of_timer(const Lp& lp, const void* timer) const;

  // ---- For handlers of LPs that come and go.
  Lp& make(Lp& vacant);
  void vacate(Lp& lp);
  void end_if_asked(Lp& lp) {
    if (Life::of(lp).leaves) end(lp);
  }
  // Whether the event that is executed was sent by an LP to itself that was there before this one.
  bool is_of_another_life(Lp& lp) const noexcept;
  // Whether it was sent by an LP at that id to itself.
  bool is_own(const Lp& lp) const noexcept { return source_of(tie_by_source(pending.popped_tie())) == lp.id; }
  void to_nobody(const Lp& vacant, const Event& event);
  [[noreturn]] void refuse_to_make(const Lp& lp, const Event& event) const;

  // A block with that event, which lacks its key.  size: of the payload.  Null if there is no memory.
  [[gnu::always_inline]] Event* new_event(LpId to, std::uint16_t type, const void* payload, std::size_t size) {
    Event* event = memory.allocate(sizeof(Event) + size);
    if (event == nullptr) [[unlikely]]
      return nullptr;
    event->destination = to;
    event->type = type;
    std::memcpy(event->payload(), payload, size);
    return event;
  }

  // ---- For the loops.  Builds the LPs; then they send their first events, or go on from a checkpoint unless it is null.
  void build(const Checkpoint* from);
  // Writes LPs and pending events; the outboxes are empty.
  void save(Archive& archive) const;
  // Executes events before bound in order, about `most` at most.  True if none is left.
  bool run_until(Time bound, std::size_t most);
  // From now on events for other partitions go into the outboxes of that parity, which are empty.
  void send_into(unsigned parity) noexcept {
    if (outbox != nullptr) outbox = outboxes[parity].data();
    min_sent = kNever;
  }
  // Takes the events that another partition has for this one.
  void receive(std::vector<Key>& keys);
  // Puts the pending events of LPs that have another owner by now into the outboxes of that parity.
  void send_what_moved(unsigned parity);
  std::vector<Lp*>& own_lps() noexcept { return own_lps_; }
  // An LP goes to another rank (World::lps_travel): it is packed and removed here, and unpacked there.
  std::vector<std::byte> packed(LpId id);
  void remove(LpId id) noexcept;
  Lp* unpack(std::span<const std::byte> packed);
  // Smallest time of anything pending or in an outbox.
  Time least() const { return std::min(pending.lower_bound(), min_sent); }
  // Adapts to numbers that change slowly.
  void adapt_memory() noexcept { memory.adapt(pending.size()); }
  // After `events` have been executed without a pause: throws Error if more than `most` have been sent and executed at the
  // present time, that is, more than were pending when it was first seen here.
  void watch_time(std::uint64_t events, std::uint64_t most);
  // Destroys the LPs of all partitions of the rank, of whichever they are: some may be on their way, if memory ran out.
  void destroy_lps() noexcept;
  // Frees whatever is still pending or in an outbox.
  void discard_events();
  // Of pending events and queues.  Events count where they were allocated and where they are released: only the sum
  // over all threads is meaningful.
  std::int64_t bytes() const noexcept;
  std::size_t event_size(const Event& event) const noexcept { return sizes_[event.type]; }  // with its header
  void release(Event* event) noexcept { memory.release(event, event_size(*event)); }

  const World& world;
  const unsigned number;
  Time now = 0;
  TimingWheel pending;
  EventMemory memory;
  std::vector<std::vector<Key>> outboxes[2];  // by parity and partition
  std::vector<Key>* outbox = nullptr;         // of the current parity
  Time min_sent = kNever;                     // since the last barrier
  Time asked_end = kNever;                    // the earliest that an LP here asked for
  std::vector<bool> reaches;                  // partitions that this one may send to; empty: all
  Counts counts;
  std::vector<std::uint64_t> executed_by_type;
  std::uint64_t executed() const noexcept;
  std::unique_ptr<DelayRecorder> delays;
  std::unique_ptr<LinkRecorder> links;  // with it
  // What is watched, if anything, while events are executed: `closely` with what costs more.
  CriticalPath* path = nullptr;
  std::uint32_t* traced_by_lp = nullptr;  // counted while it is not null (engine/tracer.h)
  bool closely = false;
  // While load may move (engine/balance.h).
  Counted* counted = nullptr;               // by LP, while it is not null
  EventTimer* event_timer = nullptr;        // not null: the next events are timed, and then it is
  std::uint64_t parted = 0, emigrated = 0;  // LPs that went to other partitions; of these, on other ranks
  std::string name_of(LpId id) const;
  std::string name_of(const Lp& lp) const { return name_of(lp.id); }
  Waits waits;
  double total_s = 0;
  std::uint64_t windows = 0;
  std::exception_ptr failure;
  std::string failed_at;  // which LP failed, when, on which event
  Report ended;           // of the LPs that have ended

 private:
  void check(const Lp& from, LpId to, Time delay, std::uint16_t type, Priority priority) {
    if (to == from.id) {
      if (!(delay >= 0)) [[unlikely]]
        throw_bad_send(from, to, delay, type);
    } else {
      ++counts.sent;
      if (!(delay >= enforced_) || to >= world.lp_count) [[unlikely]]
        check_slow(from, to, delay, type);
    }
    if (priority > kLastPriority) [[unlikely]]
      refuse_priority(from, priority);
  }
  std::uint64_t next_tie(Lp& from, Priority priority) const noexcept {
    std::uint64_t tie = tie_of(priority, from.id, from.sequence++);
    return world.ties == Ties::by_source ? tie : hashed(tie);
  }
  static std::uint64_t hashed(std::uint64_t tie) noexcept;
  static std::uint64_t unhashed(std::uint64_t tie) noexcept;
  void post(const Lp& from, const Key& key) {
    if (outbox != nullptr) {
      unsigned to = world.owner[key.event->destination];
      if (to != number) return cross(from, to, key);
    }
    pending.push(key);
  }
  void cross(const Lp& from, unsigned to, const Key& key);
  enum class Watch { nothing, load, time, closely };
  template <Watch kWatch>
  bool run(std::size_t most);
  void execute(const Key& key);
  std::size_t cell_of(const Event& event) const noexcept;
  void look_at(const Key& key, std::size_t cell);
  void make_lps();
  Lp* make_lp(LpId id, void* place);
  Lp* make_lp_apart(LpId id);
  void start_lps();
  void restore(const Checkpoint& from);
  std::size_t restore_lps(Archive& part);
  void save_lp(Archive& archive, LpId id) const;
  void restore_lp(const Lived& lived, Archive& object);
  void restore_events(Archive& part);
  void set_min_delay(Time smallest) noexcept;
  Lp& occupy(Lp& vacant);
  void end(Lp& lp);
  void leave(const LpClass& of, Lp& lp) noexcept;
  void destroy(const LpClass& of, Lp& lp) noexcept;
  std::uint64_t tie_by_source(std::uint64_t tie) const noexcept {
    return world.ties == Ties::by_source ? tie : unhashed(tie);
  }

  std::string place_of(const Key& key) const;
  void blame(Event& event) noexcept;
  [[noreturn]] void refuse_priority(const Lp& from, Priority priority) const;
  [[noreturn]] void refuse_end(const Lp& from, const std::string& why) const;
  [[noreturn]] void refuse_route(const Lp& from, const Key& key);
  [[noreturn]] void no_memory() const;
  void check_slow(const Lp& from, LpId to, Time delay, std::uint16_t type);

  Time bound_ = 0;                    // of run_until; an LP may lower it
  double enforced_ = 0;               // smallest delay to another LP that needs no closer look
  double allowed_ = 0;                // smallest delay to another LP: the lookahead, or 0 while first events are sent
  std::vector<std::uint32_t> sizes_;  // by event type, with header
  std::unique_ptr<std::byte[]> lp_memory_;
  std::vector<Lp*> own_lps_;
  // Of watch_time: the time that was seen last, what was pending then, what was executed since.
  Time watched_ = kNever;
  std::uint64_t pending_then_ = 0, simultaneous_ = 0;
};

// What a handler may not do.  On its way out of the run, the text gets the place.
class Misdeed : public Error {
 public:
  Misdeed(const std::string& kind, const std::string& who, const std::string& what)
      : Error(kind + who + " " + what), kind_(kind), what_(what) {}
  Error at(const std::string& place) const { return Error(kind_ + place + ", " + what_); }

 private:
  std::string kind_, what_;
};

}  // namespace pdes
