// The clock, random numbers, and the start line of a workload's threads.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

inline double now() {  // seconds
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

inline double thread_cpu_time() {  // seconds
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// xorshift64*: about a nanosecond, the same sequence for every allocator.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545F4914F6CDD1Du) >> 32);
  }
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((std::uint64_t{next()} * limit) >> 32); }

 private:
  std::uint64_t state_;
};

inline void relax(unsigned& spins) {  // waits, and yields on a machine with fewer cores than threads
  if (++spins % 256 == 0) std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

// A worker's own clocks.  CPU time is read inside the wall time, so that a short run cannot show more than one CPU.
struct Stamp {
  double start = 0;
  double end = 0;
  double cpu = 0;
  void begin() {
    start = now();
    cpu = -thread_cpu_time();
  }
  void finish() {
    cpu += thread_cpu_time();
    end = now();
  }
};

struct Span {
  double elapsed = 0;    // first start to last end, in seconds
  double cpu_share = 1;  // CPUs that each worker had: below one if other programs used the machine
};

inline Span span_of(const std::vector<Stamp>& stamps) {
  double start = stamps[0].start;
  double end = stamps[0].end;
  double cpu = 0;
  double wall = 0;
  for (const Stamp& stamp : stamps) {
    start = std::min(start, stamp.start);
    end = std::max(end, stamp.end);
    cpu += stamp.cpu;
    wall += stamp.end - stamp.start;
  }
  return {end - start, cpu / wall};
}

// Runs work() on the calling thread: for programs that never have a second thread, which some allocators notice.
template <class Work>
Span run_here(Work work) {
  Stamp stamp;
  stamp.begin();
  work();
  stamp.finish();
  return span_of({stamp});
}

// Pins the calling thread to one of the CPUs that this process may use.
inline void pin_to_cpu(unsigned index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  unsigned wanted = index % static_cast<unsigned>(CPU_COUNT(&allowed));
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || wanted-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

// A thread that nobody joins.  Detached from its start: glibc 2.36's pthread_detach reads the thread again after it may
// have ended and its descriptor may be another's (EINVAL or a crash, once in millions; also without any allocator).
template <class Work>
void start_detached(Work work) {
  auto run = [](void* given) -> void* {
    std::unique_ptr<Work> own(static_cast<Work*>(given));
    (*own)();
    return nullptr;
  };
  auto own = std::make_unique<Work>(std::move(work));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, run, own.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "a thread");
  own.release();
}

// Runs work(index) on that many threads at once.  A worker records its own start and end after the start line: a start
// taken by the main thread comes late if the workers fill the machine, and makes two-thread runs look too fast.
template <class Work>
Span run_workers(unsigned threads, bool pin, Work work) {
  std::vector<Stamp> stamps(threads);
  std::vector<std::thread> workers;
  std::atomic<unsigned> arrived{0};
  for (unsigned index = 0; index < threads; ++index) {
    workers.emplace_back([&, index] {
      if (pin) pin_to_cpu(index);
      arrived.fetch_add(1);
      for (unsigned spins = 0; arrived.load() < threads;) relax(spins);
      Stamp stamp;
      stamp.begin();
      work(index);
      stamp.finish();
      stamps[index] = stamp;
    });
  }
  for (auto& worker : workers) worker.join();
  return span_of(stamps);
}

}  // namespace bench
