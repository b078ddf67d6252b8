#include "pdes/foreign.h"

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "foreign/lps.h"
#include "foreign/options.h"
#include "pdes/simulation.h"

struct hm_pdes {
  explicit hm_pdes(const char* options) {
    attempt([&] { simulation.emplace(pdes::options_of(options)); });
  }

  // Does nothing after an error.
  template <class Work>
  void attempt(Work&& work) noexcept {
    if (!error.empty()) return;
    try {
      work();
    } catch (const std::exception& what) { error = what.what(); }
  }

  std::string error;
  std::vector<pdes::EventType> types;
  std::vector<std::unique_ptr<pdes::ForeignClass>> classes;
  pdes::Result result;
  std::vector<hm_pdes_statistic> statistics;
  hm_pdes_result given{};
  std::optional<pdes::Simulation> simulation;  // the last, for its LPs refer to the classes
};

namespace {

void describe(hm_pdes& of) {
  const pdes::Result& result = of.result;
  for (const auto& number : result.statistics.numbers())
    of.statistics.push_back({number.name.c_str(), static_cast<int64_t>(number.kind), number.count, number.sum.value(),
                             number.least, number.most});
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
              .events_by_type = result.events_by_type.data(),
              .statistic_count = of.statistics.size(),
              .statistics = of.statistics.data()};
}

}  // namespace

hm_pdes* hm_pdes_new(const char* options) { return new (std::nothrow) hm_pdes(options); }
void hm_pdes_free(hm_pdes* simulation) { delete simulation; }

void hm_pdes_event_type(hm_pdes* simulation, const char* name, size_t size) {
  simulation->attempt([&] {
    if (!simulation->classes.empty()) throw pdes::Error("event types come before LPs");
    if (simulation->types.size() == 255) throw pdes::Error("at most 255 event types");
    if (size > pdes::kMaxPayload)
      throw pdes::Error("event " + std::string(name) + " has " + std::to_string(size) + " bytes; at most " +
                        std::to_string(pdes::kMaxPayload) + " are allowed");
    simulation->types.push_back({static_cast<std::uint32_t>(size), name});
  });
}

void hm_pdes_add(hm_pdes* simulation, const hm_pdes_class* lps, uint32_t count) {
  simulation->attempt([&] {
    auto added = std::make_unique<pdes::ForeignClass>(*lps, simulation->types.size(), count);
    // All its classes have one list of event types, for which it stands itself.
    const auto* list = reinterpret_cast<const char*>(simulation);
    added->first = simulation->simulation->add_class(added->described(count), simulation->types, list);
    simulation->classes.push_back(std::move(added));
  });
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
      const hm_pdes_progress progress{at.wall_s, at.now, at.events, at.pending, at.bytes};
      call(context, &progress);
    });
  });
}

void hm_pdes_stop(hm_pdes* simulation) {
  if (simulation->simulation) simulation->simulation->stop();
}

const hm_pdes_result* hm_pdes_run(hm_pdes* simulation) {
  simulation->attempt([&] {
    simulation->result = simulation->simulation->run();
    describe(*simulation);
  });
  return simulation->error.empty() ? &simulation->given : nullptr;
}

const char* hm_pdes_error(const hm_pdes* simulation) { return simulation->error.c_str(); }
