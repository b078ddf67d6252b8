#include "foreign/lps.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>

#include "pdes/timer.h"

namespace pdes {
namespace {

// As lp.h has it.
Lp& lp_of(void* state) noexcept { return static_cast<Lp*>(state)[-1]; }

constexpr std::size_t rounded(std::size_t size) noexcept { return (size + 7) & ~std::size_t{7}; }

void handle(Partition& partition, Lp& lp, const Event& event) {
  const hm_pdes_handler handler = ForeignClass::of(lp).handlers[event.type];
  if (handler == nullptr) [[unlikely]]
    partition.no_handler(lp, event);
  ForeignCall(partition, lp)(handler, event.payload());
}

void handle_cancellable(Partition& partition, Lp& lp, const Event& event) {
  hm_pdes_setting setting;
  const auto* payload = static_cast<const std::byte*>(event.payload());
  std::memcpy(&setting, payload + partition.world.types[event.type].size - sizeof setting, sizeof setting);
  if (Timer::expires(lp.object(), Cancellable<char>{0, setting.place, setting.life})) handle(partition, lp, event);
  else ++partition.counts.cancelled;
}

void refuse_to_make(Partition& partition, Lp& lp, const Event& event) { partition.refuse_to_make(lp, event); }

void tell_undelivered(const ForeignClass& of, const Event& event) {
  if (*of.on_undelivered) (*of.on_undelivered)(event.type, event.payload());
}

template <Handler kHandle>
void handle_passing(Partition& partition, Lp& lp, const Event& event) {
  if (partition.is_of_another_life(lp)) {
    ++partition.counts.undelivered;
    tell_undelivered(ForeignClass::of(lp), event);
  } else {
    kHandle(partition, lp, event);
    partition.end_if_asked(lp);
  }
}

// Of an id where nobody is.
void to_nobody(Partition& partition, Lp& vacant, const Event& event) {
  partition.to_nobody(vacant, event);
  tell_undelivered(ForeignClass::of(partition.world.class_of(vacant.id).handlers), event);
}

void make(Partition& partition, Lp& vacant, const Event& event) {
  if (partition.is_own(vacant)) return to_nobody(partition, vacant, event);
  Lp& lp = partition.make(vacant);
  const ForeignClass& of = ForeignClass::of(lp);
  of.begin_streams(partition, lp);
  ForeignCall(partition, lp)(of.handlers[event.type], event.payload());
  partition.end_if_asked(lp);
}

// By TypeKind.
constexpr Handler kThere[] = {&handle, &handle_cancellable, &refuse_to_make};
constexpr Handler kPassing[] = {&handle_passing<&handle>, &handle_passing<&handle_cancellable>,
                                &handle_passing<&refuse_to_make>};

void start(Partition& partition, Lp& lp) {
  const ForeignClass& of = ForeignClass::of(lp);
  of.begin_streams(partition, lp);
  if (of.start != nullptr) ForeignCall(partition, lp)(of.start, nullptr);
}

void save(Archive& archive, void* state) {
  Lp& lp = lp_of(state);
  const ForeignClass& of = ForeignClass::of(lp);
  archive.raw(state, of.plain_size());
  for (Histogram& histogram : of.histograms_of(lp)) archive(histogram);
  for (Vacancies& vacancies : of.vacancies_of(lp)) archive(vacancies);
}

void destroy(void* state) noexcept {
  Lp& lp = lp_of(state);
  std::ranges::destroy(ForeignClass::of(lp).histograms_of(lp));
  std::ranges::destroy(ForeignClass::of(lp).vacancies_of(lp));
}

void report(const void* state, Report& into) {
  Lp& lp = lp_of(const_cast<void*>(state));
  const ForeignClass& of = ForeignClass::of(lp);
  const auto keep = [&] {
    if (of.comes_and_goes && Life::of(lp).leaves) return;
    if (of.present != nullptr) of.present->push_back(lp.id);
    if (of.there != nullptr) of.there[lp.id - of.first] = 1;
    if (of.finals != nullptr) std::memcpy(of.finals + (lp.id - of.first) * of.size, state, of.size);
  };
  if (of.report == nullptr) return keep();
  hm_pdes_report call{into, lp.id, nullptr};
  const bool done = of.report(&call, const_cast<void*>(state)) != 0;
  keep();  // a report may change the state
  if (call.failure != nullptr) std::rethrow_exception(call.failure);
  if (!done) throw Misdeed("", "LP " + std::to_string(lp.id) + " (" + of.name + ")", "failed to report");
}

}  // namespace

ForeignClass::ForeignClass(const hm_pdes_class& from, const std::vector<TypeKind>& types, LpId lps)
    : name(from.name),
      size(from.size),
      streams(from.streams),
      histograms(from.histograms),
      vacancies(from.vacancies),
      start(from.start),
      report(from.report),
      shared(from.shared != 0),
      finals(static_cast<std::byte*>(from.finals)),
      unsaved(from.unsaved == nullptr ? "" : from.unsaved) {
  static_assert(offsetof(ForeignClass, engine_handlers) == 0);
  std::ranges::copy(types, kinds.begin());
  std::ranges::transform(kinds, engine_handlers.begin(), [](TypeKind kind) { return kThere[static_cast<int>(kind)]; });
  std::copy_n(from.handlers, types.size(), handlers.begin());
  if (from.states == nullptr || lps == 0) return;
  const auto* bytes = static_cast<const std::byte*>(from.states);
  states.assign(bytes, bytes + size * (shared ? 1 : lps));
}

void ForeignClass::let_come_and_go(bool others_are_dropped, unsigned char* at_the_end, const OnUndelivered& told) {
  comes_and_goes = true;
  drops = others_are_dropped;
  there = at_the_end;
  on_undelivered = &told;
  std::ranges::transform(kinds, engine_handlers.begin(), [](TypeKind kind) { return kPassing[static_cast<int>(kind)]; });
  std::ranges::transform(kinds, handlers, vacant_handlers.begin(), [](TypeKind kind, hm_pdes_handler handler) {
    return kind == TypeKind::making && handler != nullptr ? &make : &to_nobody;
  });
  if (std::ranges::count(vacant_handlers, &make) == 0)
    throw Error("nothing makes LPs of class " + name + ": it has no handler of an event that makes LPs");
}

LpClass ForeignClass::described(LpId count) {
  return {.name = name,
          .first = 0,
          .count = count,
          .size = plain_size() + histograms * sizeof(Histogram) + vacancies * sizeof(Vacancies),
          .handlers = engine_handlers.data(),
          .construct =
              [this](void* place, LpId id) {
                if (states.empty()) std::memset(place, 0, size);
                else std::memcpy(place, states.data() + (shared ? 0 : (id - first) * size), size);
                std::uninitialized_value_construct_n(first_histogram(place), histograms);
                std::uninitialized_value_construct_n(first_vacancies(place), vacancies);
              },
          .destroy = &pdes::destroy,
          .start = &pdes::start,
          .report = &pdes::report,
          .saving = {.archive = unsaved.empty() ? &save : nullptr, .why_not = unsaved.c_str()},
          .vacant_handlers = comes_and_goes ? vacant_handlers.data() : nullptr,
          .drops = drops};
}

std::size_t ForeignClass::plain_size() const noexcept { return rounded(size) + streams * sizeof(Stream); }

Histogram* ForeignClass::first_histogram(void* state) const noexcept {
  return reinterpret_cast<Histogram*>(static_cast<std::byte*>(state) + plain_size());
}

Vacancies* ForeignClass::first_vacancies(void* state) const noexcept {
  return reinterpret_cast<Vacancies*>(first_histogram(state) + histograms);
}

std::span<Histogram> ForeignClass::histograms_of(Lp& lp) const noexcept {
  return {first_histogram(lp.object()), histograms};
}

std::span<Vacancies> ForeignClass::vacancies_of(Lp& lp) const noexcept { return {first_vacancies(lp.object()), vacancies}; }

bool ForeignClass::is_cancellable(std::uint32_t type) const noexcept {
  return type < kTypes && kinds[type] == TypeKind::cancellable;
}

Stream* ForeignClass::streams_of(Lp& lp) const noexcept {
  return reinterpret_cast<Stream*>(static_cast<std::byte*>(lp.object()) + rounded(size));
}

void ForeignClass::begin_streams(const Partition& partition, Lp& lp) const noexcept {
  for (std::uint32_t i = 0; i < streams; ++i) streams_of(lp)[i] = partition.stream(lp, i + 1);
}

ForeignCall::ForeignCall(Partition& on, Lp& lp) noexcept
    : hm_pdes_lp{on.now, on.world.end,      on.world.lookahead,
                 lp.id,  on.world.lp_count, on.world.generator == Generator::splitmix ? &lp.stream.state : nullptr},
      partition(on),
      engine_lp(lp) {}

void ForeignCall::operator()(hm_pdes_handler handler, const void* event) {
  const bool done = handler(this, engine_lp.object(), event) != 0;
  if (failure != nullptr) [[unlikely]]
    std::rethrow_exception(failure);
  if (!done) [[unlikely]]
    refuse("failed");
}

void ForeignCall::refuse(const std::string& what) const { throw Misdeed("", partition.name_of(engine_lp), what); }

Random ForeignCall::random(std::uint32_t stream) {
  const ForeignClass& of = ForeignClass::of(engine_lp);
  if (stream > of.streams) [[unlikely]]
    refuse("has no random stream " + std::to_string(stream));
  return {stream == 0 ? engine_lp.stream : of.streams_of(engine_lp)[stream - 1], partition.world.generator};
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

// What lies behind the state for a member of it.
template <class Member>
[[gnu::always_inline]] inline auto& meant(const Member* member, const char* kind, auto all_of) {
  const auto* state = reinterpret_cast<const std::byte*>(member) - member->place;
  pdes::Lp& lp = pdes::lp_of(const_cast<std::byte*>(state));
  const auto all = (pdes::ForeignClass::of(lp).*all_of)(lp);
  const auto number = static_cast<std::uint32_t>(member->number);
  if (number >= all.size())
    throw pdes::Error("LP " + std::to_string(lp.id) + " has no " + kind + " " + std::to_string(member->number));
  return all[number];
}
pdes::Histogram& meant(const hm_pdes_histogram* histogram) {
  return meant(histogram, "histogram", &pdes::ForeignClass::histograms_of);
}
pdes::Vacancies& meant(const hm_pdes_vacancies* vacancies) {
  return meant(vacancies, "vacancies", &pdes::ForeignClass::vacancies_of);
}

// Of members: whether it could be done.
template <class Work>
int done(Work&& work) noexcept {
  try {
    work();
    return 1;
  } catch (...) { return 0; }
}

}  // namespace

void hm_pdes_send(hm_pdes_lp* lp, int64_t to, double delay, uint32_t type, const void* event, uint32_t priority) {
  ForeignCall& call = call_of(lp);
  call.attempt([&] {
    const auto& types = call.partition.world.types;
    if (type >= types.size()) [[unlikely]]
      call.refuse("sends an event of type " + std::to_string(type) + ": there is none");
    if (to < 0 || to >= lp->lp_count) [[unlikely]]
      call.partition.throw_bad_send(call.engine_lp, to, delay, static_cast<std::uint16_t>(type));
    const auto send = [&](std::size_t size) __attribute__((always_inline)) {
      call.partition.send_bytes(call.engine_lp, static_cast<pdes::LpId>(to), delay, static_cast<std::uint16_t>(type), event,
                                size, priority);
    };
    switch (types[type].size) {  // a copy of a known size is a few instructions
      case 0:
        event = lp;  // for it may be null, which memcpy never takes
        return send(0);
      case 8: return send(8);
      case 16: return send(16);
      default: send(types[type].size);
    }
  });
}

void hm_pdes_set_timer(hm_pdes_lp* lp, hm_pdes_timer* timer, double delay, uint32_t type, void* event, uint32_t priority) {
  ForeignCall& call = call_of(lp);
  call.attempt([&] {
    if (!pdes::ForeignClass::of(call.engine_lp).is_cancellable(type))
      call.refuse("sets a timer to an event of type " + std::to_string(type) + ", which none can cancel");
    const std::uint32_t place = call.partition.place_of_timer(call.engine_lp, timer);
    const hm_pdes_setting setting{place, reinterpret_cast<pdes::Timer*>(timer)->set()};
    std::memcpy(static_cast<std::byte*>(event) + call.partition.world.types[type].size - sizeof setting, &setting,
                sizeof setting);
    hm_pdes_send(lp, lp->id, delay, type, event, priority);
  });
}

void hm_pdes_end_after(hm_pdes_lp* lp, double delay) {
  ForeignCall& call = call_of(lp);
  call.attempt([&] { call.partition.end_after(call.engine_lp, delay); });
}

void hm_pdes_vacate(hm_pdes_lp* lp) {
  ForeignCall& call = call_of(lp);
  call.attempt([&] { call.partition.vacate(call.engine_lp); });
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
double hm_pdes_exponential_of(hm_pdes_lp* lp, uint32_t stream, uint64_t bits) {
  return drawn(lp, stream, [&](pdes::Random random) { return random.exponential_of(bits); });
}
const double* hm_pdes_exponential_edges(void) { return pdes::kLayerEdges.data(); }
int64_t hm_pdes_integer(hm_pdes_lp* lp, uint32_t stream, int64_t n) {
  return drawn(lp, stream, [&](pdes::Random random) {
    if (n <= 0) [[unlikely]]
      call_of(lp).refuse("draws an integer below " + std::to_string(n));
    return static_cast<int64_t>(random.integer(static_cast<std::uint64_t>(n)));
  });
}

double hm_pdes_natural_log(double x) { return pdes::natural_log(x); }

void hm_pdes_fail(hm_pdes_lp* lp, const char* text) {
  ForeignCall& call = call_of(lp);
  call.attempt([&] { call.refuse(std::string("failed: ") + text); });
}

double hm_pdes_half_width(const hm_pdes_batch_means* means) { return std::bit_cast<pdes::BatchMeans>(*means).half_width(); }

int hm_pdes_histogram_add(const hm_pdes_histogram* histogram, double value) {
  return done([&] { meant(histogram).add(value); });
}

static pdes::LpId id_of(int64_t number) {
  if (number < 0 || number > int64_t{pdes::kMaxLps}) throw pdes::Error("there is no LP " + std::to_string(number));
  return static_cast<pdes::LpId>(number);
}

int hm_pdes_vacancies_set(const hm_pdes_vacancies* vacancies, int64_t first, int64_t count) {
  return done([&] { meant(vacancies) = pdes::Vacancies(id_of(first), id_of(count)); });
}
int64_t hm_pdes_vacancies_take(const hm_pdes_vacancies* vacancies) {
  std::optional<pdes::LpId> id;
  done([&] { id = meant(vacancies).take(); });
  return id ? int64_t{*id} : -1;
}
int hm_pdes_vacancies_give_back(const hm_pdes_vacancies* vacancies, int64_t id) {
  return done([&] { meant(vacancies).give_back(id_of(id)); });
}

uint32_t hm_pdes_report_id(const hm_pdes_report* report) { return report->lp; }
double hm_pdes_report_now(const hm_pdes_report* report) { return report->report.now(); }

void hm_pdes_report_count(hm_pdes_report* report, const char* name, int64_t value) {
  attempt(report, [&](pdes::Report& into) { into.count(name, value); });
}
void hm_pdes_report_sum(hm_pdes_report* report, const char* name, double value) {
  attempt(report, [&](pdes::Report& into) { into.sum(name, value); });
}
void hm_pdes_report_tally(hm_pdes_report* report, const char* name, const hm_pdes_tally* tally) {
  attempt(report, [&](pdes::Report& into) { into.tally(name, std::bit_cast<pdes::Tally>(*tally)); });
}
void hm_pdes_report_level(hm_pdes_report* report, const char* name, const hm_pdes_level* level) {
  attempt(report, [&](pdes::Report& into) { into.level(name, std::bit_cast<pdes::Level>(*level)); });
}
void hm_pdes_report_histogram(hm_pdes_report* report, const char* name, const hm_pdes_histogram* histogram) {
  attempt(report, [&](pdes::Report& into) { into.histogram(name, meant(histogram)); });
}
void hm_pdes_report_interval(hm_pdes_report* report, const char* name, const hm_pdes_batch_means* means) {
  attempt(report, [&](pdes::Report& into) { into.interval(name, std::bit_cast<pdes::BatchMeans>(*means)); });
}
