#include "foreign/lps.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "foreign/text.h"

namespace pdes {
namespace {

constexpr std::size_t rounded(std::size_t size) noexcept { return (size + 7) & ~std::size_t{7}; }

void handle(Partition& partition, Lp& lp, const Event& event) {
  ForeignCall call(partition, lp);
  const hm_pdes_handler handler = call.object.of->handlers[event.type];
  if (handler == nullptr) [[unlikely]]
    partition.no_handler(lp, event);
  call(handler, event.payload());
}

void start(Partition& partition, Lp& lp) {
  ForeignCall call(partition, lp);
  if (call.object.of->start != nullptr) call(call.object.of->start, nullptr);
}

void report(const void* place, Report& into) {
  auto& object = *static_cast<ForeignObject*>(const_cast<void*>(place));
  const ForeignClass& of = *object.of;
  const auto keep = [&] {
    if (of.finals != nullptr) std::memcpy(of.finals + (object.id - of.first) * of.size, object.state(), of.size);
  };
  if (of.report == nullptr) return keep();
  hm_pdes_report call{into, nullptr};
  const bool done = of.report(&call, object.state()) != 0;
  keep();  // a report may change the state
  if (call.failure != nullptr) std::rethrow_exception(call.failure);
  if (!done) throw Error("LP " + std::to_string(object.id) + " (" + of.name + ") failed to report");
}

// The same for all types: which handler is meant, is for the class to say.
constexpr auto kHandlers = [] {
  std::array<Handler, 256> handlers{};
  handlers.fill(&handle);
  return handlers;
}();

}  // namespace

ForeignClass::ForeignClass(const hm_pdes_class& from, std::size_t event_types, LpId lps)
    : name(from.name),
      size(from.size),
      streams(from.streams),
      start(from.start),
      handlers(from.handlers, from.handlers + event_types),
      report(from.report),
      shared(from.shared != 0),
      finals(static_cast<std::byte*>(from.finals)),
      first(0) {
  if (from.states == nullptr || lps == 0) return;
  const auto* bytes = static_cast<const std::byte*>(from.states);
  states.assign(bytes, bytes + size * (shared ? 1 : lps));
}

LpClass ForeignClass::described(LpId count) {
  return {.name = name,
          .first = 0,
          .count = count,
          .size = ForeignObject::size(*this),
          .handlers = kHandlers.data(),
          .construct =
              [this](void* place, LpId id) {
                auto* object = ::new (place) ForeignObject{this, id};
                if (states.empty()) std::memset(object->state(), 0, size);
                else std::memcpy(object->state(), states.data() + (shared ? 0 : (id - first) * size), size);
              },
          .destroy = [](void*) noexcept {},
          .start =
              [](Partition& partition, Lp& lp) {
                auto& object = *static_cast<ForeignObject*>(lp.object());
                for (std::uint32_t i = 0; i < object.of->streams; ++i)
                  object.streams()[i] = Stream(partition.world.seed, lp.id, i + 1);
                pdes::start(partition, lp);
              },
          .report = &pdes::report};
}

Stream* ForeignObject::streams() noexcept {
  return reinterpret_cast<Stream*>(static_cast<std::byte*>(state()) + rounded(of->size));
}

std::size_t ForeignObject::size(const ForeignClass& of) noexcept {
  return sizeof(ForeignObject) + rounded(of.size) + of.streams * sizeof(Stream);
}

ForeignCall::ForeignCall(Partition& on, Lp& lp) noexcept
    : hm_pdes_lp{on.now, on.world.end, on.world.lookahead, lp.id, on.world.lp_count},
      partition(on),
      engine_lp(lp),
      object(*static_cast<ForeignObject*>(lp.object())) {}

void ForeignCall::operator()(hm_pdes_handler handler, const void* event) {
  const bool done = handler(this, object.state(), event) != 0;
  if (failure != nullptr) [[unlikely]]
    std::rethrow_exception(failure);
  if (!done) [[unlikely]]
    throw Error(name() + " failed at time " + text_of(now));
}

std::string ForeignCall::name() const { return "LP " + std::to_string(id) + " (" + object.of->name + ")"; }

Random ForeignCall::random(std::uint32_t stream) {
  if (stream > object.of->streams) [[unlikely]]
    throw Error(name() + " has no random stream " + std::to_string(stream));
  return {stream == 0 ? engine_lp.stream : object.streams()[stream - 1], partition.world.generator};
}

}  // namespace pdes

using pdes::ForeignCall;

namespace {

ForeignCall& call_of(hm_pdes_lp* lp) noexcept { return static_cast<ForeignCall&>(*lp); }

template <class Draw>
auto drawn(hm_pdes_lp* lp, std::uint32_t stream, Draw&& draw) noexcept {
  ForeignCall& call = call_of(lp);
  decltype(draw(call.random(stream))) number = 0;
  call.attempt([&] { number = draw(call.random(stream)); });
  return number;
}

template <class Work>
void attempt(hm_pdes_report* call, Work&& work) noexcept {
  if (call->failure != nullptr) return;
  try {
    work(call->report);
  } catch (...) { call->failure = std::current_exception(); }
}

}  // namespace

void hm_pdes_send(hm_pdes_lp* lp, int64_t to, double delay, uint32_t type, const void* event, uint32_t priority) {
  ForeignCall& call = call_of(lp);
  call.attempt([&] {
    const auto& types = call.partition.world.types;
    if (type >= types.size()) [[unlikely]]
      throw pdes::Error(call.name() + " sends an event of type " + std::to_string(type) + ": there is none");
    if (to < 0 || to >= lp->lp_count) [[unlikely]]
      throw pdes::Error(call.name() + " sends " + types[type].name + " to LP " + std::to_string(to) + " at time " +
                        pdes::text_of(lp->now) + ": there are only " + std::to_string(lp->lp_count) + " LPs");
    call.partition.send_bytes(call.engine_lp, static_cast<pdes::LpId>(to), delay, static_cast<std::uint16_t>(type), event,
                              types[type].size, priority);
  });
}

uint64_t hm_pdes_bits(hm_pdes_lp* lp, uint32_t stream) {
  return drawn(lp, stream, [](pdes::Random random) { return random.bits(); });
}
double hm_pdes_uniform(hm_pdes_lp* lp, uint32_t stream) {
  return drawn(lp, stream, [](pdes::Random random) { return random.uniform(); });
}
double hm_pdes_exponential(hm_pdes_lp* lp, uint32_t stream, double mean) {
  return drawn(lp, stream, [&](pdes::Random random) { return random.exponential(mean); });
}
int64_t hm_pdes_integer(hm_pdes_lp* lp, uint32_t stream, int64_t n) {
  return drawn(lp, stream, [&](pdes::Random random) {
    if (n <= 0) [[unlikely]]
      throw pdes::Error(call_of(lp).name() + " draws an integer below " + std::to_string(n));
    return static_cast<int64_t>(random.integer(static_cast<std::uint64_t>(n)));
  });
}

void hm_pdes_fail(hm_pdes_lp* lp, const char* text) {
  ForeignCall& call = call_of(lp);
  call.attempt([&] { throw pdes::Error(call.name() + " failed at time " + pdes::text_of(lp->now) + ": " + text); });
}

void hm_pdes_report_count(hm_pdes_report* report, const char* name, int64_t value) {
  attempt(report, [&](pdes::Report& into) { into.count(name, value); });
}
void hm_pdes_report_sum(hm_pdes_report* report, const char* name, double value) {
  attempt(report, [&](pdes::Report& into) { into.sum(name, value); });
}
void hm_pdes_report_tally(hm_pdes_report* report, const char* name, const hm_pdes_tally* tally) {
  attempt(report, [&](pdes::Report& into) { into.tally(name, std::bit_cast<pdes::Tally>(*tally)); });
}
