// The time line of a run, for chrome://tracing or Perfetto: what each thread did when.  In memory until the run has ended.
//
// Of spans (windows, waiting, bursts of events) the latest are kept, some 260,000 on each rank; of samples (pending events,
// memory) some thousands over the whole run, thinned out as it gets longer.  Thread safety: each thread adds spans of its
// own; the first one adds windows and samples.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "pdes/mpi.h"
#include "pdes/partition.h"

namespace pdes {

class Tracer {
 public:
  // On the first rank: throws Error if the file cannot be written.
  Tracer(std::string path, unsigned threads, unsigned rank);

  // A span from its construction to its destruction.  Without a tracer it does not even read the clock.
  class Scope {
   public:
    Scope(Tracer* tracer, unsigned thread) noexcept : Scope(tracer, thread, nullptr, kNever, kNever) {}  // waiting
    Scope(Tracer* tracer, unsigned thread, const Partition& of) noexcept : Scope(tracer, thread, &of, kNever, kNever) {}
    Scope(Tracer* tracer, Time from, Time to) noexcept : Scope(tracer, kWindows, nullptr, from, to) {}
    ~Scope() {
      if (tracer_ != nullptr) [[unlikely]]
        tracer_->add(*this);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Tracer;
    Scope(Tracer* tracer, unsigned track, const Partition* of, Time from, Time to) noexcept : tracer_(tracer) {
      if (tracer == nullptr) [[likely]]
        return;
      track_ = track;
      of_ = of;
      from_ = from;
      to_ = to;
      events_ = of == nullptr ? 0 : of->executed();
      begin_ = Clock::now();
    }
    Tracer* tracer_;
    unsigned track_ = 0;
    const Partition* of_ = nullptr;  // whose events are executed
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
  };
  struct Sample {
    Clock::time_point at;
    std::uint64_t pending, bytes;
  };
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  void add(const Scope& scope) noexcept;
  std::string text() const;
  std::uint64_t lost() const noexcept;
  double micros(Clock::time_point at) const noexcept;

  const std::string path_;
  const unsigned rank_;
  const std::size_t room_;  // spans of each track
  const Clock::time_point start_ = Clock::now();
  std::vector<Track> tracks_;  // of threads; the last: of windows
  std::vector<Sample> samples_;
  std::uint64_t counted_ = 0, count_every_ = 1;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace pdes
