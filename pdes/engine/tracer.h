// The time line of a run, for chrome://tracing or Perfetto: what each thread did when.  In memory until the run has ended.
//
// Of spans (windows, waiting, bursts of events) the latest are kept, some 260,000 on each rank; of samples (pending events,
// memory) some thousands over the whole run, thinned out as it gets longer.  Events are counted by LP in at most 256 intervals,
// in fewer the more LPs there are; when all are full, each two become one.  Thread safety: each thread adds spans of its own
// and counts what it executes; the first one adds windows and samples.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pdes/mpi.h"
#include "pdes/partition.h"

namespace pdes {

class Tracer {
 public:
  // On the first rank: throws Error if the file cannot be written.
  Tracer(std::string path, unsigned threads, unsigned rank, const World& world);

  // A span from its construction to its destruction.  Without a tracer it does not even read the clock.
  class Scope {
   public:
    Scope(Tracer* tracer, unsigned thread) noexcept : Scope(tracer, thread, nullptr, kNever, kNever) {}  // waiting
    Scope(Tracer* tracer, unsigned thread, Partition& of) noexcept : Scope(tracer, thread, &of, kNever, kNever) {}
    Scope(Tracer* tracer, Time from, Time to) noexcept : Scope(tracer, kWindows, nullptr, from, to) {}
    ~Scope() {
      if (tracer_ != nullptr) [[unlikely]]
        tracer_->add(*this);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Tracer;
    Scope(Tracer* tracer, unsigned track, Partition* of, Time from, Time to) noexcept : tracer_(tracer) {
      if (tracer == nullptr) [[likely]]
        return;
      track_ = track;
      of_ = of;
      from_ = from;
      to_ = to;
      begin_ = Clock::now();
      if (of == nullptr) return;
      events_ = of->executed();
      of->traced_by_lp = tracer->counts(track, begin_);
    }
    Tracer* tracer_;
    unsigned track_ = 0;
    Partition* of_ = nullptr;  // whose events are executed
    Time from_ = 0, to_ = 0;
    std::uint64_t events_ = 0;
    std::chrono::steady_clock::time_point begin_{};
  };

  void count(std::uint64_t pending, std::uint64_t bytes);
  // Writes the file, on the first rank; all ranks call it.  Returns why that failed, or nothing.  lost: spans that there
  // was no room for.
  std::string finish(Ranks* ranks, std::uint64_t& lost);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned kWindows = ~0u;  // their track
  struct Span {
    Clock::time_point begin, end;
    Time from, to;         // of a window
    std::uint64_t events;  // of a burst; 0: it waits
  };
  struct Track {
    std::vector<Span> spans;  // when it is full, the oldest is at `added` modulo its size
    std::uint64_t added = 0;
    // Events by interval and LP.  All intervals of a thread are equally long, from the start on.
    std::vector<std::vector<std::uint32_t>> executed;
    Clock::duration interval = std::chrono::milliseconds(4);
  };
  // Of an LP or a class on a rank, or of a class on a thread: events by interval.
  using Course = std::vector<std::uint64_t>;
  struct Sample {
    Clock::time_point at;
    std::uint64_t pending, bytes;
  };
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  void add(const Scope& scope) noexcept;
  // Where a thread counts what it executes from then on; null: there is no memory for it.
  std::uint32_t* counts(unsigned track, Clock::time_point at) noexcept;
  static void halve(Track& track);
  void make_intervals_equal();
  Course course(const Track& track, LpId first, LpId count) const;
  std::vector<std::pair<std::uint64_t, LpId>> hottest() const;  // with their events
  void write_events_by_lp(std::string& text) const;
  void write_course(std::string& text, const std::string& name,
                    const std::vector<std::pair<std::string, Course>>& parts) const;
  std::string text() const;
  std::uint64_t lost() const noexcept;
  double micros(Clock::time_point at) const noexcept;

  const std::string path_;
  const unsigned rank_;
  const World& world_;
  const std::size_t room_;       // spans of each track
  const std::size_t intervals_;  // even
  const Clock::time_point start_ = Clock::now();
  Clock::time_point ended_;
  std::vector<Track> tracks_;  // of threads; the last: of windows
  std::vector<Sample> samples_;
  std::uint64_t counted_ = 0, count_every_ = 1;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace pdes
