#include "pdes/partition.h"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>

#include "engine/costs.h"
#include "engine/critical_path.h"
#include "engine/delays.h"
#include "engine/number_text.h"
#include "pdes/timer.h"

namespace pdes {
namespace {

constexpr std::ptrdiff_t kPrefetchEvent = 12;  // keys ahead: prefetches the event's line
constexpr std::ptrdiff_t kPrefetchLp = 4;      // by then the event is here, and names its LP
constexpr std::size_t kLpAlign = 16;

std::size_t lp_size(const LpClass& of) noexcept {
  return (sizeof(Lp) + (of.comes_and_goes() ? 0 : of.size) + kLpAlign - 1) & ~(kLpAlign - 1);
}

// Adds one event to the digest of its LP.  Not commutative: the digest depends on the order.
std::uint64_t digest_of(std::uint64_t before, const Key& key, std::uint16_t type) noexcept {
  std::uint64_t word = std::bit_cast<std::uint64_t>(key.time) ^ std::rotl(key.tie, 17) ^ type;
  return (std::rotl(before, 29) ^ word) * 0x9e3779b97f4a7c15;
}

}  // namespace

std::string type_name(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string full = status == 0 ? name.get() : type.name();
  int inside = 0;  // brackets: of a template's arguments, or of the function that the type is local to
  for (std::size_t at = full.size(); at-- > 1;) {
    if (full[at] == '>' || full[at] == ')') ++inside;
    if (full[at] == '<' || full[at] == '(') --inside;
    if (inside == 0 && full[at] == ':' && full[at - 1] == ':') return full.substr(at + 1);
  }
  return full;
}

const LpClass& World::class_of(LpId id) const noexcept {
  auto after =
      std::upper_bound(classes.begin(), classes.end(), id, [](LpId lp, const LpClass& of) { return lp < of.first; });
  return *(after - 1);
}

Partition::Partition(const World& all, const Options& options, unsigned own_number, unsigned partitions)
    : world(all),
      number(own_number),
      pending(options.queue, options.lookahead),
      memory(options.allocator, options.blocks, partitions > 1),
      executed_by_type(all.types.size()) {
  for (const EventType& type : all.types) sizes_.push_back(static_cast<std::uint32_t>(sizeof(Event)) + type.size);
  if (options.measure_delays) {
    delays = std::make_unique<DelayRecorder>();
    links = std::make_unique<LinkRecorder>();
  }
  set_min_delay(0);
  if (partitions == 1) return;
  for (auto& boxes : outboxes) boxes.resize(partitions);
  outbox = outboxes[0].data();
}

Partition::~Partition() = default;

void Partition::destroy_lps() noexcept {
  for (const LpClass& of : world.classes) {
    for (LpId id = of.first; id < of.first + of.count; ++id) {
      Lp* lp = world.lps[id];
      if (lp == nullptr) continue;
      destroy(of, *lp);
      if (world.lps_travel) ::operator delete(world.lps[id]);
    }
  }
}

// What is left is the record of the id.
void Partition::destroy(const LpClass& of, Lp& lp) noexcept {
  if (lp.handlers == of.vacant_handlers) return;
  if (of.comes_and_goes()) leave(of, lp);
  else of.destroy(lp.object());
}

void Partition::remove(LpId id) noexcept {
  destroy(world.class_of(id), *world.lps[id]);
  ::operator delete(std::exchange(world.lps[id], nullptr));
}

void Partition::discard_events() {
  for (const Key& key : pending.drain()) release(key.event);
  for (auto& boxes : outboxes) {
    for (auto& box : boxes) {
      for (const Key& key : box) release(key.event);
      box.clear();
    }
  }
}

void Partition::build(const Checkpoint* from) {
  make_lps();
  if (from != nullptr) restore(*from);
  else start_lps();
  // If no other thread runs ahead, delays can be measured of a model that violates its lookahead.
  bool alone = world.owner.empty();
  set_min_delay(delays != nullptr && alone ? 0 : world.lookahead);
}

void Partition::make_lps() {
  std::size_t bytes = kLpAlign;
  std::vector<LpId> ids;
  for (const LpClass& of : world.classes) {
    for (LpId id = of.first; id < of.first + of.count; ++id) {
      if (!world.owner.empty() && world.owner[id] != number) continue;
      ids.push_back(id);
      bytes += lp_size(of);
    }
  }
  own_lps_.reserve(ids.size());
  if (world.lps_travel) {
    for (LpId id : ids) own_lps_.push_back(make_lp_apart(id));
    return;
  }
  lp_memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  auto place = (reinterpret_cast<std::uintptr_t>(lp_memory_.get()) + kLpAlign - 1) & ~(kLpAlign - 1);
  for (LpId id : ids) {
    own_lps_.push_back(make_lp(id, reinterpret_cast<void*>(place)));
    place += lp_size(world.class_of(id));
  }
}

Lp* Partition::make_lp(LpId id, void* place) {
  const LpClass& of = world.class_of(id);
  const Handler* handlers = of.comes_and_goes() ? of.vacant_handlers : of.handlers;
  Lp* lp = ::new (place) Lp{handlers, 0, Stream(world.seed, id, 0), id};
  if (!of.comes_and_goes()) of.construct(lp->object(), id);
  return world.lps[id] = lp;
}

Lp* Partition::make_lp_apart(LpId id) {
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kLpAlign);
  void* place = ::operator new(lp_size(world.class_of(id)));
  try {
    return make_lp(id, place);
  } catch (...) {
    ::operator delete(place);
    throw;
  }
}

void Partition::start_lps() {
  for (Lp* lp : own_lps_) {
    const LpClass& of = world.class_of(lp->id);
    if (of.comes_and_goes()) continue;
    try {
      of.start(*this, *lp);
    } catch (...) {
      failed_at = name_of(*lp) + ", at its start";
      throw;
    }
    adapt_memory();
  }
}

void Partition::cross(const Lp& from, unsigned to, const Key& key) {
  if (!reaches.empty() && !reaches[to]) [[unlikely]]
    refuse_route(from, key);
  ++counts.crossed;
  min_sent = std::min(min_sent, key.time);
  outbox[to].push_back(key);
}

void Partition::set_min_delay(Time smallest) noexcept {
  allowed_ = smallest;
  enforced_ = delays != nullptr || path != nullptr ? kNever : smallest;
}

[[gnu::always_inline]] inline void Partition::execute(const Key& key) {
  Event* event = key.event;
  Lp& lp = *world.lps[event->destination];
  std::uint16_t type = event->type;
  now = key.time;
  lp.digest = digest_of(lp.digest, key, type);
  ++executed_by_type[type];
  try {
    lp.handlers[type](*this, lp, *event);
  } catch (...) {
    blame(*event);
    release(event);
    throw;
  }
  memory.release(event, sizes_[type]);
}

bool Partition::run_until(Time bound, std::size_t most) {
  bound_ = std::min(bound, asked_end);  // which is where a thread alone ends, that has one window
  const bool none_left = closely                  ? run<Watch::closely>(most)
                         : event_timer != nullptr ? run<Watch::time>(most)
                         : counted != nullptr     ? run<Watch::load>(most)
                                                  : run<Watch::nothing>(most);
  event_timer = nullptr;
  return none_left;
}

template <Partition::Watch kWatch>
bool Partition::run(std::size_t most) {
  if constexpr (kWatch == Watch::time || kWatch == Watch::closely)
    if (event_timer != nullptr) event_timer->start();
  for (std::size_t left = most; left > 0; --left) {
    const Key* least = pending.peek(bound_);
    if (least == nullptr) return true;
    Key key = *least;
    pending.pop(least);
    const Key* ahead = pending.upcoming();
    if (pending.upcoming_end() - ahead > kPrefetchEvent) {
      __builtin_prefetch(ahead[kPrefetchEvent].event, 1);
      __builtin_prefetch(world.lps[ahead[kPrefetchLp].event->destination], 1);
    }
    std::size_t cell = 0;
    // Of any class, where that makes no difference.
    if constexpr (kWatch == Watch::load) cell = counted->weights->by_class() ? cell_of(*key.event) : key.event->type;
    if constexpr (kWatch == Watch::time || kWatch == Watch::closely) cell = cell_of(*key.event);
    if constexpr (kWatch == Watch::load || kWatch == Watch::time)
      if (counted != nullptr) counted->add(key.event->destination, cell);
    if constexpr (kWatch == Watch::closely) look_at(key, cell);
    execute(key);
    if constexpr (kWatch == Watch::time || kWatch == Watch::closely)
      if (event_timer != nullptr) event_timer->lap(cell);
  }
  return false;
}

// Of its type, on LPs of that class (engine/costs.h).
std::size_t Partition::cell_of(const Event& event) const noexcept {
  const auto of = static_cast<std::size_t>(&world.class_of(event.destination) - world.classes.data());
  return of * executed_by_type.size() + event.type;
}

void Partition::look_at(const Key& key, std::size_t cell) {
  const LpId lp = key.event->destination;
  if (counted != nullptr) counted->add(lp, cell);
  if (traced_by_lp != nullptr) traced_by_lp[lp] += traced_by_lp[lp] < UINT32_MAX;
  if (path == nullptr) return;
  const std::uint64_t tie = tie_by_source(key.tie);
  path->executes(lp, source_of(tie), static_cast<std::uint32_t>(tie));
}

// Backwards, so that an exception leaves every event in one place only; the order is irrelevant.
void Partition::receive(std::vector<Key>& keys) {
  for (; !keys.empty(); keys.pop_back()) pending.push(keys.back());
}

// By way of the box for itself, so that an exception leaves every event in one place only.
void Partition::send_what_moved(unsigned parity) {
  auto& boxes = outboxes[parity];
  auto& leaving = boxes[number];
  pending.sift([this](const Key& key) { return world.owner[key.event->destination] != number; }, leaving);
  for (; !leaving.empty(); leaving.pop_back())
    boxes[world.owner[leaving.back().event->destination]].push_back(leaving.back());
}

std::int64_t Partition::bytes() const noexcept { return static_cast<std::int64_t>(pending.bytes()) + memory.held(); }

std::uint64_t Partition::hashed(std::uint64_t tie) noexcept {
  constexpr std::uint64_t kPriority = std::uint64_t{kLastPriority} << (kSourceBits + kSequenceBits);
  // Odd multiplication, and exclusive or with higher bits, are invertible on 58 bits: different ties stay different.
  std::uint64_t rest = tie & ~kPriority;
  for (std::uint64_t factor : {0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu}) {
    rest = rest * factor & ~kPriority;
    rest ^= rest >> 29;
  }
  return (tie & kPriority) | rest;
}

void Partition::watch_time(std::uint64_t events, std::uint64_t most) {
  if (now != watched_) {
    watched_ = now;
    pending_then_ = pending.size();
    simultaneous_ = 0;
    return;
  }
  simultaneous_ += events;
  if (simultaneous_ <= pending_then_ || simultaneous_ - pending_then_ <= most) return;
  const Key* next = pending.peek(kNever);
  failed_at = next != nullptr ? place_of(*next) : "";
  throw Error("time stands still: " + failed_at + ", after more than " + std::to_string(most) +
              " events that followed each other without delay");
}

Key Partition::from_outside(const Injected& given, std::uint64_t index) {
  Event* event = new_event(given.to, given.type, given.payload.data(), given.payload.size());
  if (event == nullptr) no_memory();
  const std::uint64_t tie = tie_of(given.priority, kOutside, static_cast<std::uint32_t>(index));
  return {given.time, world.ties == Ties::by_source ? tie : hashed(tie), event};
}

// Other threads have executed nothing later than the lookahead above this event, so they can still end where it says.
void Partition::end_after(const Lp& from, Time delay) {
  if (!(delay >= world.lookahead))
    refuse_end(from, " after " + text_of(delay) + ": that is below the lookahead " + text_of(world.lookahead));
  if (!(now + delay < kNever)) refuse_end(from, " after " + text_of(delay) + ": a time must be finite");
  for (unsigned thread = 0; thread < reaches.size(); ++thread)
    if (thread != number && !reaches[thread])
      refuse_end(from, ", but its thread may not send to every other one: declare no neighbours, or use windows");
  asked_end = std::min(asked_end, now + delay);
  bound_ = std::min(bound_, asked_end);
}

std::uint32_t Partition::place_of_timer(const Lp& lp, const void* timer) const {
  const auto place = reinterpret_cast<std::uintptr_t>(timer) - reinterpret_cast<std::uintptr_t>(lp.object());
  const std::size_t size = world.class_of(lp.id).size;
  if (place >= size || size - place < sizeof(Timer)) [[unlikely]]
    throw Misdeed("", name_of(lp), "sets a timer that is no member of it");
  return static_cast<std::uint32_t>(place);
}

void Partition::check_slow(const Lp& from, LpId to, Time delay, std::uint16_t type) {
  if (!(delay >= allowed_) || to >= world.lp_count) throw_bad_send(from, to, delay, type);
  if (delays != nullptr && delay < kNever) {
    delays->add(delay);
    links->add(world.class_of(from.id), world.class_of(to), type, delay);
  }
  if (path != nullptr) path->sent(from.id, from.sequence);
}

std::uint64_t Partition::executed() const noexcept {
  return std::accumulate(executed_by_type.begin(), executed_by_type.end(), std::uint64_t{0});
}

}  // namespace pdes
