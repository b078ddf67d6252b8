// Samples the duration of single calls: an allocation until its first byte is written, and a free.
//
// A program uses Unsampled for throughput and one LatencySampler per thread for latency: two clock readings around a
// call cost more than the call.  One call in 16 is timed, at random distances: an allocator does its slow work every
// 32nd or 64th call, and a fixed stride would meet it always or never.
#pragma once

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "report.h"
#include "workers.h"

namespace bench {

inline std::int64_t clock_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct Unsampled {
  explicit Unsampled(std::uint64_t) {}
  template <class Call>
  void* allocation(Call call) {
    return call();
  }
  template <class Call>
  void freeing(Call call) {
    call();
  }
};

// Summary of the samples of a stretch of time, in nanoseconds.
struct Stretch {
  double allocation_p999;
  double free_p999;
  double longest;
};

// For one thread.  Its memory is mapped and touched in advance, and does not come from the allocator.
class alignas(128) LatencySampler {
 public:
  explicit LatencySampler(std::uint64_t seed) : random_(seed) {
    void* memory = mmap(nullptr, 2 * kMax * sizeof(std::uint32_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    allocations_.samples = static_cast<std::uint32_t*>(memory);
    frees_.samples = allocations_.samples + kMax;
  }

  // call: one allocation; returns its pointer.
  template <class Call>
  void* allocation(Call call) {
    if (--until_next_ != 0) return call();
    std::int64_t start = clock_ns();
    void* block = call();
    add(allocations_, clock_ns() - start);
    return block;
  }
  template <class Call>
  void freeing(Call call) {
    if (--until_next_ != 0) return call();
    std::int64_t start = clock_ns();
    call();
    add(frees_, clock_ns() - start);
  }

  // Returns the samples since the last call of this, and forgets them.
  Stretch take_stretch() {
    Stretch taken{p999(allocations_), p999(frees_), std::max(longest(allocations_), longest(frees_))};
    allocations_.seen = frees_.seen = 0;
    return taken;
  }

  // Appends little-endian words: nanoseconds, and bit 31 for a free.
  bool write(std::FILE* file) const { return write(file, allocations_, 0) && write(file, frees_, 1u << 31); }

 private:
  static constexpr std::uint32_t kMax = 65536;  // samples of a kind
  static constexpr std::uint32_t kMeanDistance = 16;

  struct Kind {
    std::uint32_t* samples = nullptr;
    std::uint32_t seen = 0;
  };

  // Beyond kMax every sample of the run has the same chance to stay (reservoir sampling), so the start does not count
  // more than the rest.
  void add(Kind& kind, std::int64_t nanoseconds) {
    std::uint32_t place = kind.seen < kMax ? kind.seen : random_.below(kind.seen + 1);
    ++kind.seen;
    if (place < kMax) kind.samples[place] = static_cast<std::uint32_t>(std::min<std::int64_t>(nanoseconds, INT32_MAX));
    until_next_ = 1 + random_.below(2 * kMeanDistance - 1);
  }

  static std::uint32_t kept(const Kind& kind) { return std::min(kind.seen, kMax); }
  static double p999(Kind& kind) {
    if (kept(kind) == 0) return 0;
    std::uint32_t* at = kind.samples + kept(kind) * std::uint64_t{999} / 1000;
    std::nth_element(kind.samples, at, kind.samples + kept(kind));
    return *at;
  }
  static double longest(const Kind& kind) {
    return kept(kind) == 0 ? 0 : *std::max_element(kind.samples, kind.samples + kept(kind));
  }

  static bool write(std::FILE* file, const Kind& kind, std::uint32_t bit) {
    for (std::uint32_t i = 0; i < kept(kind); ++i) {
      std::uint32_t word = kind.samples[i] | bit;
      if (std::fwrite(&word, sizeof word, 1, file) != 1) return false;
    }
    return true;
  }

  Random random_;
  std::uint32_t until_next_ = kMeanDistance;
  Kind allocations_;
  Kind frees_;
};

// What reading the clock twice adds to each sample: the median; it is not subtracted.
inline double cost_of_clock_ns() {
  std::array<std::int64_t, 1001> costs;
  for (auto& cost : costs) {
    std::int64_t start = clock_ns();
    cost = clock_ns() - start;
  }
  std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
  return static_cast<double>(costs[costs.size() / 2]);
}

inline void write_latencies(const std::vector<LatencySampler>& samplers, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file != nullptr;
  for (const LatencySampler& sampler : samplers) written = written && sampler.write(file);
  if (file != nullptr && std::fclose(file) != 0) written = false;
  if (written) return;
  std::fprintf(stderr, "%s: cannot write the latency samples\n", path.c_str());
  std::exit(1);
}

struct Sampled {
  Span span;
  std::string fields;  // of the report
};

// Runs body(samplers), which returns a Span, with a sampler for each thread.  path: the file for the samples; empty:
// none are taken.
template <class Body>
Sampled run_sampled(const std::string& path, unsigned threads, Body body) {
  auto run = [&]<class Sampler>(std::vector<Sampler> samplers) {
    for (unsigned index = 0; index < threads; ++index) samplers.emplace_back(index + 1);
    Span span = body(samplers);
    if constexpr (std::is_same_v<Sampler, Unsampled>) return Sampled{span, {}};
    else {
      write_latencies(samplers, path);
      return Sampled{span, field("clock_ns", cost_of_clock_ns())};
    }
  };
  return path.empty() ? run(std::vector<Unsampled>{}) : run(std::vector<LatencySampler>{});
}

}  // namespace bench
