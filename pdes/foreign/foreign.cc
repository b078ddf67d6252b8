#include "pdes/foreign.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/append.h"
#include "engine/failure_text.h"
#include "foreign/lps.h"
#include "foreign/options.h"
#include "foreign/ranks.h"
#include "mpi/launched.h"
#include "pdes/simulation.h"

struct hm_pdes {
  // Of a histogram.
  struct Steps {
    std::vector<int32_t> steps;
    std::vector<uint64_t> counts;
  };

  explicit hm_pdes(const char* given_options) : options(given_options) {
    attempt([&] { simulation.emplace(pdes::options_of(options)); });
  }

  // Does nothing after an error.
  template <class Work>
  void attempt(Work&& work) noexcept {
    if (!error.empty()) return;
    try {
      work();
    } catch (...) { error = pdes::failure_text(simulation ? simulation->partial().failed_at : ""); }
  }

  const std::string options;
  std::string error;
  std::atomic<bool> over = false;  // also if it never began
  std::vector<pdes::EventType> types;
  std::vector<pdes::TypeKind> kinds;  // of them
  pdes::OnUndelivered on_undelivered;
  std::vector<std::unique_ptr<pdes::ForeignClass>> classes;
  pdes::Result result;
  std::vector<Steps> steps;  // of a statistic each
  std::vector<hm_pdes_statistic> statistics;
  std::vector<hm_pdes_injected> injected;
  std::vector<hm_pdes_link> links;
  std::vector<hm_pdes_thread> threads;
  hm_pdes_result given{};
  std::optional<pdes::Simulation> simulation;  // the last, for its LPs refer to the classes
};

namespace {

thread_local std::string inject_error;

// Stands for a model's Context, to which the types of events are known: here they are numbers.
struct AsItIs {
  static pdes::Injected from_outside(pdes::LpId, const pdes::Injected& event, pdes::Priority) { return event; }
};

// Also before there is a run that would refuse it.
pdes::Injected event_of(const hm_pdes& simulation, int64_t to, uint32_t type, const void* event, uint32_t priority,
                        double time) {
  const auto word = [](auto number) { return std::to_string(number); };
  if (to < 0 || to >= simulation.simulation->lp_count())
    throw pdes::Error("an event from outside is for LP " + word(to) + ", which does not exist");
  if (type >= simulation.types.size())
    throw pdes::Error("an event from outside is of type " + word(type) + ": there is none");
  const auto* bytes = static_cast<const std::byte*>(event);
  return {time,
          static_cast<pdes::LpId>(to),
          static_cast<std::uint16_t>(type),
          priority,
          {bytes, bytes + simulation.types[type].size}};
}

using Kind = pdes::Report::Number::Kind;

hm_pdes_statistic described(const pdes::Report::Number& number, hm_pdes::Steps& steps) {
  for (const auto& [step, count] : number.buckets) {
    steps.steps.push_back(step);
    steps.counts.push_back(count);
  }
  return {.name = number.name.c_str(),
          .kind = static_cast<int64_t>(number.kind),
          .count = number.count,
          .sum = number.sum.value(),
          .least = number.least,
          .most = number.most,
          .time = number.kind == Kind::level ? number.second.value() : 0,
          .half_width = number.kind == Kind::interval ? number.half_width() : 0,
          .batch_size = number.batch_size,
          .step_count = steps.steps.size(),
          .steps = steps.steps.data(),
          .step_counts = steps.counts.data()};
}

hm_pdes_delays described(const pdes::Delays& seen, std::vector<hm_pdes_link>& links) {
  for (const auto& link : seen.links)
    links.push_back({link.from.c_str(), link.to.c_str(), link.event.c_str(), link.count, link.smallest,
                     pdes::suggested_lookahead(link.smallest)});
  return {.count = seen.count,
          .smallest = seen.smallest,
          .mean = seen.mean,
          .largest = seen.largest,
          .p1 = seen.percentile(1),
          .p50 = seen.percentile(50),
          .p99 = seen.percentile(99),
          .suggested_lookahead = pdes::suggested_lookahead(seen.smallest),
          .link_count = links.size(),
          .links = links.data()};
}

void describe(hm_pdes& of) {
  const pdes::Result& result = of.result;
  of.steps.reserve(result.statistics.numbers().size());
  for (const auto& number : result.statistics.numbers()) of.statistics.push_back(described(number, of.steps.emplace_back()));
  for (const auto& event : result.injected)
    of.injected.push_back({event.time, event.to, event.type, event.priority, event.payload.data()});
  for (std::size_t i = 0; i < result.threads.size(); ++i) {
    const pdes::Activity& thread = result.threads[i];
    of.threads.push_back({thread.events, thread.working_s, thread.blocked_s, 0, nullptr});
    if (i >= result.waited_on.size()) continue;
    of.threads.back().waited_on_count = result.waited_on[i].size();
    of.threads.back().waited_on = result.waited_on[i].data();
  }
  of.given = {.digest = result.digest,
              .reached = result.reached,
              .wall_s = result.wall_s,
              .stopped = result.stopped,
              .events = result.total.events,
              .sent = result.total.sent,
              .crossed = result.total.crossed,
              .dropped = result.total.dropped,
              .windows = result.total.windows,
              .peak_pending = result.peak_pending,
              .peak_bytes = result.peak_bytes,
              .events_before = result.events_before,
              .checkpoints = result.checkpoints,
              .cancelled = result.total.cancelled,
              .events_by_type = result.events_by_type.data(),
              .statistic_count = of.statistics.size(),
              .statistics = of.statistics.data(),
              .injected_count = of.injected.size(),
              .injected = of.injected.data(),
              .made = result.total.made,
              .ended = result.total.ended,
              .undelivered = result.total.undelivered,
              .gathered = result.gathered,
              .rank = 0,
              .delays = described(result.delays, of.links),
              .path_events = result.path.events,
              .path_last = result.path.last.c_str(),
              .trace_lost = result.trace_lost,
              .trace_error = result.trace_error.c_str(),
              .ended_by_model = result.ended_by_model,
              .rank_count = 1,
              .thread_count = of.threads.size(),
              .threads = of.threads.data()};
}

const pdes::ForeignClass& class_of(const hm_pdes& simulation, pdes::LpId id) {
  for (const auto& of : simulation.classes)
    if (id - of->first < of->lp_count) return *of;
  throw pdes::Error("a rank has LP " + std::to_string(id) + ", which does not exist");
}

// What all ranks have alike; nothing after an error, which no other simulation is like.
std::vector<std::byte> outline(const hm_pdes& simulation) {
  std::vector<std::byte> bytes;
  if (!simulation.error.empty()) return bytes;
  const auto add = [&](const std::string& text, std::uint64_t size, std::uint64_t count) {
    const std::uint64_t numbers[]{text.size(), size, count};
    pdes::append(bytes, numbers, std::size(numbers));
    pdes::append(bytes, text.data(), text.size());
  };
  add(simulation.options, simulation.types.size(), simulation.classes.size());
  for (const pdes::EventType& type : simulation.types) add(type.name, type.size, 0);
  for (const auto& of : simulation.classes) add(of->name, of->size, of->lp_count);
  return bytes;
}

// The messages of two runs of one process, in two threads or one within the other, would be mixed up.  Acquire and release: a
// run sees what the one before it, perhaps in another thread, has left of MPI and of the ranks.
class TurnOfRanks {
 public:
  TurnOfRanks() {
    if (taken.exchange(true, std::memory_order_acquire))
      throw pdes::Error("a run on several ranks goes on in this process already");
  }
  ~TurnOfRanks() { taken.store(false, std::memory_order_release); }
  TurnOfRanks(const TurnOfRanks&) = delete;
  TurnOfRanks& operator=(const TurnOfRanks&) = delete;

 private:
  static inline std::atomic<bool> taken = false;
};

// A rank that runs nothing, or something else, would keep the others waiting, or have a part in an answer to no question.
void require_same(const hm_pdes& simulation, pdes::Ranks& ranks) {
  const std::vector<std::byte> mine = outline(simulation);
  std::vector<std::byte> first = mine;
  ranks.broadcast(first);
  std::vector<std::byte> same{std::byte{!mine.empty() && mine == first}};
  for (const auto& of_rank : ranks.gather(same)) same[0] &= of_rank.at(0);
  ranks.broadcast(same);
  if (same.at(0) != std::byte{1}) throw pdes::Error("the ranks have not all made the same simulation");
}

// The states at the end, which each rank has of its own LPs, on the first rank.
void gather_states(hm_pdes& simulation, pdes::Ranks& ranks, const std::vector<pdes::LpId>& here) {
  std::vector<std::byte> mine;
  for (const pdes::LpId id : here) {
    const pdes::ForeignClass& of = class_of(simulation, id);
    pdes::append(mine, &id, 1);
    if (of.finals != nullptr) pdes::append(mine, of.finals + (id - of.first) * of.size, of.size);
  }
  const auto all = ranks.gather(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    std::span<const std::byte> left = all[rank];
    const auto take = [&](void* into, std::size_t size) {
      if (left.size() < size) throw pdes::Error("a rank sent less than its states");
      std::memcpy(into, left.data(), size);
      left = left.subspan(size);
    };
    while (!left.empty()) {
      pdes::LpId id = 0;
      take(&id, sizeof id);
      const pdes::ForeignClass& of = class_of(simulation, id);
      if (of.there != nullptr) of.there[id - of.first] = 1;
      if (of.finals != nullptr) take(of.finals + (id - of.first) * of.size, of.size);
    }
  }
}

}  // namespace

hm_pdes* hm_pdes_new(const char* options) try { return new hm_pdes(options); } catch (const std::bad_alloc&) {
  return nullptr;
}
void hm_pdes_free(hm_pdes* simulation) { delete simulation; }

namespace {

void add_type(hm_pdes& simulation, const char* name, std::size_t size, pdes::TypeKind kind) {
  simulation.attempt([&] {
    if (!simulation.classes.empty()) throw pdes::Error("event types come before LPs");
    if (simulation.types.size() == 255) throw pdes::Error("at most 255 event types");
    if (size > pdes::kMaxPayload)
      throw pdes::Error("event " + std::string(name) + " has " + std::to_string(size) + " bytes; at most " +
                        std::to_string(pdes::kMaxPayload) + " are allowed");
    if (kind == pdes::TypeKind::cancellable && size < sizeof(hm_pdes_setting))
      throw pdes::Error("event " + std::string(name) + " has no room for the setting of its timer");
    simulation.types.push_back({static_cast<std::uint32_t>(size), name});
    simulation.kinds.push_back(kind);
  });
}

void add(hm_pdes& simulation, std::unique_ptr<pdes::ForeignClass> added, pdes::LpId count) {
  // All its classes have one list of event types, for which it stands itself.
  const auto* list = reinterpret_cast<const char*>(&simulation);
  added->lp_count = count;
  added->first = simulation.simulation->add_class(added->described(count), simulation.types, list);
  simulation.classes.push_back(std::move(added));
}

}  // namespace

void hm_pdes_event_type(hm_pdes* simulation, const char* name, size_t size) {
  add_type(*simulation, name, size, pdes::TypeKind::plain);
}

void hm_pdes_cancellable_type(hm_pdes* simulation, const char* name, size_t size) {
  add_type(*simulation, name, size, pdes::TypeKind::cancellable);
}

void hm_pdes_making_type(hm_pdes* simulation, const char* name, size_t size) {
  add_type(*simulation, name, size, pdes::TypeKind::making);
}

void hm_pdes_add(hm_pdes* simulation, const hm_pdes_class* lps, uint32_t count) {
  simulation->attempt(
      [&] { add(*simulation, std::make_unique<pdes::ForeignClass>(*lps, simulation->kinds, count), count); });
}

void hm_pdes_add_vacant(hm_pdes* simulation, const hm_pdes_class* lps, uint32_t count, int drops, unsigned char* there) {
  simulation->attempt([&] {
    auto added = std::make_unique<pdes::ForeignClass>(*lps, simulation->kinds, count);
    added->let_come_and_go(drops != 0, there, simulation->on_undelivered);
    add(*simulation, std::move(added), count);
  });
}

void hm_pdes_on_undelivered(hm_pdes* simulation, void (*call)(void*, uint32_t, const void*), void* context) {
  simulation->attempt(
      [&] { simulation->on_undelivered = [=](std::uint32_t type, const void* event) { call(context, type, event); }; });
}

void hm_pdes_set_neighbours(hm_pdes* simulation, const uint64_t* from, const uint32_t* to) {
  simulation->attempt([&] {
    simulation->simulation->set_neighbours([=](pdes::LpId id, const auto& each) {
      for (std::uint64_t i = from[id]; i < from[id + 1]; ++i) each(to[i]);
    });
  });
}

void hm_pdes_on_progress(hm_pdes* simulation, void (*call)(void*, const hm_pdes_progress*), void* context) {
  simulation->attempt([&] {
    simulation->simulation->on_progress([=](const pdes::Progress& at) {
      const hm_pdes_progress progress{.wall_s = at.wall_s,
                                      .now = at.now,
                                      .events = at.events,
                                      .pending = at.pending,
                                      .bytes = at.bytes,
                                      .window = at.window,
                                      .windows = at.windows,
                                      .thread_count = at.blocked_s.size(),
                                      .blocked_s = at.blocked_s.data(),
                                      .thread_events = at.thread_events.data()};
      call(context, &progress);
    });
  });
}

void hm_pdes_on_save(hm_pdes* simulation, void (*call)(void*, double, const char*), void* context) {
  simulation->attempt([&] {
    simulation->simulation->on_save(
        [=](const pdes::Saved& saved) { call(context, saved.at, saved.error.empty() ? nullptr : saved.error.c_str()); });
  });
}

void hm_pdes_on_checkpoint(hm_pdes* simulation, hm_pdes_saver save, hm_pdes_loader load, void* context) {
  simulation->attempt([&] {
    simulation->simulation->on_checkpoint(
        [=] {
          std::size_t size = 0;
          const char* why_not = "it does not say why";
          const auto* bytes = static_cast<const std::byte*>(save(context, &size, &why_not));
          if (bytes == nullptr) throw pdes::Error(why_not);
          return std::vector(bytes, bytes + size);
        },
        [=](std::span<const std::byte> bytes) {
          const char* why_not = load(context, bytes.data(), bytes.size());
          if (why_not != nullptr) throw pdes::Error(why_not);
        });
  });
}

void hm_pdes_stop(hm_pdes* simulation) {
  if (simulation->simulation) simulation->simulation->stop();
}

void hm_pdes_save(hm_pdes* simulation) {
  if (simulation->simulation) simulation->simulation->save();
}

int hm_pdes_inject(hm_pdes* simulation, int64_t to, uint32_t type, const void* event, uint32_t priority) {
  if (simulation->over.load(std::memory_order_acquire) || !simulation->simulation) return 0;
  try {
    auto given = event_of(*simulation, to, type, event, priority, 0);
    return simulation->simulation->inject<AsItIs>(given.to, given) ? 1 : 0;
  } catch (...) { inject_error = pdes::failure_text(); }
  return -1;
}

const char* hm_pdes_inject_error() { return inject_error.c_str(); }

void hm_pdes_replay(hm_pdes* simulation, const hm_pdes_injected* events, size_t count) {
  simulation->attempt([&] {
    std::vector<pdes::Injected> replayed;
    for (const auto* event = events; event != events + count; ++event)
      replayed.push_back(event_of(*simulation, event->to, event->type, event->payload, event->priority, event->time));
    simulation->simulation->replay(std::move(replayed));
  });
}

int hm_pdes_has_ranks() { return pdes::launched_with_others() ? 1 : 0; }

const hm_pdes_result* hm_pdes_run(hm_pdes* simulation) {
  pdes::Ranks* ranks = nullptr;
  std::optional<TurnOfRanks> turn;
  try {
    ranks = pdes::ranks_of_process();
    if (ranks != nullptr) {
      turn.emplace();
      require_same(*simulation, *ranks);
    }
  } catch (...) {
    if (simulation->error.empty()) simulation->error = pdes::failure_text();
  }
  simulation->attempt([&] {
    std::vector<pdes::LpId> here;
    if (ranks != nullptr)
      for (auto& of : simulation->classes) of->present = &here;
    simulation->result = simulation->simulation->run(ranks);
    describe(*simulation);
    if (ranks == nullptr) return;
    simulation->given.rank = static_cast<std::uint64_t>(ranks->rank());
    simulation->given.rank_count = static_cast<std::uint64_t>(ranks->count());
    gather_states(*simulation, *ranks, here);
  });
  simulation->over.store(true, std::memory_order_release);
  return simulation->error.empty() ? &simulation->given : nullptr;
}

double hm_pdes_quantile(const hm_pdes_statistic* histogram, double q) {
  try {
    pdes::Report::Number number;
    number.count = histogram->count;
    number.least = histogram->least;
    number.most = histogram->most;
    for (uint64_t i = 0; i < histogram->step_count; ++i)
      number.buckets.emplace_hint(number.buckets.end(), histogram->steps[i], histogram->step_counts[i]);
    return number.quantile(q);
  } catch (const std::bad_alloc&) { return NAN; }
}

const char* hm_pdes_error(const hm_pdes* simulation) { return simulation->error.c_str(); }
