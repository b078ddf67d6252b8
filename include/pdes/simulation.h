// A simulation: its LPs, its options, its run.  A process may have several; each is used by one thread at a time,
// except for stop(), save() and inject().
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "pdes/context.h"
#include "pdes/injected.h"
#include "pdes/lp_graph.h"
#include "pdes/options.h"
#include "pdes/result.h"

namespace pdes {

class Ranks;  // pdes/mpi.h

class Simulation {
 public:
  // Throws Error if the options make no sense.
  explicit Simulation(Options options);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  const Options& options() const noexcept;
  LpId lp_count() const noexcept;  // LPs added so far

  // Adds count LPs of class Object; make(id) returns each, on the thread that runs it first, and, with Balance::ranks, on each
  // rank that it moves to.  Returns the id of the first.  Object has: using Context = pdes::Context<...>; void
  // start(Context&), which sends its first events (to any LP, with any delay of at least 0); void on(Context&, const Event&)
  // for each event type it may get; and optionally void report(pdes::Report&) const, called at the end.  Unless it is
  // trivially copyable it also says how it is saved (pdes/checkpoint.h).
  template <class Object, class Make>
  LpId add(LpId count, Make make) {
    using Context = typename Object::Context;
    LpClass added = described<Object>(count, std::move(make), Context::template handlers<Object>());
    added.start = [](Partition& partition, Lp& lp) {
      Context context(partition, lp);
      static_cast<Object*>(lp.object())->start(context);
    };
    return add_class(std::move(added), Context::types(), &Context::kName);
  }
  // Adds count ids where nobody is at first; make(id) returns the LP that an event makes there (pdes/vacancies.h).  Object
  // needs no start.
  template <class Object, class Make>
  LpId add_vacant(LpId count, Make make, Undelivered others = Undelivered::refused) {
    using Context = typename Object::Context;
    LpClass added = described<Object>(count, std::move(make), Context::template passing_handlers<Object>());
    added.vacant_handlers = Context::template vacant_handlers<Object>();
    added.drops = others == Undelivered::dropped;
    return add_class(std::move(added), Context::types(), &Context::kName);
  }

  // What add does, of a class that is made while the program runs (foreign.h).  `list` is the same for all classes.
  LpId add_class(LpClass added, std::vector<EventType> types, const char* list);

  // Who may send to whom, for Sync::neighbours and Partitioning::graph: each(id, to) calls to(other) for every LP that `id`
  // may send events to, on the thread that will run `id`, and for the graph before, on the one that runs the simulation, on
  // the first rank.  By neighbours, a send to a thread that no LP of the sender's thread declared ends the run.  Without a
  // call of set_neighbours every LP may send to every other.
  using Neighbours = std::function<void(LpId id, const std::function<void(LpId)>& to)>;
  void set_neighbours(Neighbours each);
  // Who divides that graph, for Partitioning::graph, on the first rank, unless METIS shall (pdes/metis.h).
  void set_partitioner(Partitioner how);

  // Called on the thread that runs the simulation, every progress_interval seconds of real time or somewhat later.
  void on_progress(std::function<void(const Progress&)> call);

  // For any thread or signal handler, at any time: the run ends soon, with a partial result; Options::checkpoint is written
  // first.
  void stop() noexcept;
  // The same for a checkpoint: it is written soon, and the run goes on.
  void save() noexcept;
  // Called on the thread that runs the simulation, on the first rank, when a checkpoint has been written or could not be.
  // The latter does not end the run, and leaves the checkpoint before as it was.
  void on_save(std::function<void(const Saved&)> call);
  // For models of which something lies in no LP and no event, where only numbers stand for it, as in other languages: it is
  // saved with checkpoints as the bytes that save returns, while no handler runs; when a run goes on, load takes them before
  // there are LPs.  Both are called on the thread that runs the simulation, on the first rank, and may throw.
  void on_checkpoint(std::function<std::vector<std::byte>()> save, std::function<void(std::span<const std::byte>)> load);

  // For any thread, while the run goes on or before: LP `to` executes the event at the time that real time has come to when
  // the run takes it (Options::pace), after what it has executed already.  Context is the model's.  False: the run is over.
  // Throws Error if there is no such LP, or no pace.
  template <class Context, class E>
  bool inject(LpId to, const E& event, Priority priority = 0) {
    return inject(Context::from_outside(to, event, priority));
  }
  // Before the run: what another run of the model took from outside (Result::injected) comes at the same times again, with or
  // without a pace, and the result is the same.
  void replay(std::vector<Injected> events);

  // May be called once.  With ranks, every rank calls it with the same options and LPs.  Throws Error; an LP's
  // exception ends the run on all threads and is rethrown.
  Result run(Ranks* ranks = nullptr);
  // After run() has thrown: what had been done by then.
  const Result& partial() const noexcept;

 private:
  template <class Object, class Make>
  static LpClass described(LpId count, Make make, const Handler* handlers) {
    static_assert(alignof(Object) <= 16, "an LP needs an alignment of at most 16");
    return {type_name(typeid(Object)),
            0,
            count,
            sizeof(Object),
            handlers,
            [make = std::move(make)](void* place, LpId id) { ::new (place) Object(make(id)); },
            [](void* object) noexcept { static_cast<Object*>(object)->~Object(); },
            nullptr,
            [](const void* object, Report& report) {
              if constexpr (requires(const Object& o) { o.report(report); })
                static_cast<const Object*>(object)->report(report);
            },
            saving_of<Object>()};
  }
  bool inject(Injected event);
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace pdes
