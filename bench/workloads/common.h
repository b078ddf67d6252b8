// What every workload shares: the allocator under test, the clock, the start line, the arguments and the result line.
//
// Measuring rules: a worker stamps its own start and end after the start line (a start taken by the main thread comes
// late when the workers fill the machine, and makes two-thread runs look too fast); every block is written, so that
// its memory counts; every pointer escapes, so that no call can be left out by the compiler.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#if defined(HM_BENCH_LOCAL) || defined(HM_BENCH_SHARED)
#include <hmalloc/hmalloc.h>
#endif

namespace bench {

// ---- The allocator under test, chosen when compiling. -----------------------------------------------------------

#if defined(HM_BENCH_LOCAL)
inline constexpr const char* kApi = "local";
inline void* allocate(std::size_t size) { return hm_local_alloc(size); }
inline void release(void* block, std::size_t) { hm_local_free(block); }
#elif defined(HM_BENCH_SHARED)
inline constexpr const char* kApi = "shared";
inline void* allocate(std::size_t size) { return hm_shared_alloc(size); }
// Whoever handles a message knows its type, and so its size.
inline void release(void* block, std::size_t size) { hm_shared_free_sized(block, size); }
#elif defined(HM_BENCH_FLOOR)
inline constexpr const char* kApi = "floor";
// No allocator: one thread takes the blocks of an array in turn.  What is left is what no allocator can avoid.
inline void* allocate(std::size_t size) {
  constexpr std::size_t kBlocks = 8192;  // more than the queue and its batches hold
  alignas(4096) static char memory[kBlocks * 256];
  static std::size_t next = 0;
  char* block = memory + next;
  next += size;
  if (next == kBlocks * size) next = 0;
  return block;
}
inline void release(void*, std::size_t) {}
#else
inline constexpr const char* kApi = "malloc";
inline void* allocate(std::size_t size) { return std::malloc(size); }
inline void release(void* block, std::size_t) { std::free(block); }
#endif

// Hides from the compiler where the pointer comes from and what happens to its memory.
template <class T>
inline void escape(T*& pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
}

// Allocates and writes the first byte.
inline void* allocate_touched(std::size_t size) {
  void* block = allocate(size);
  escape(block);
  if (block == nullptr) std::abort();
  *static_cast<volatile char*>(block) = 1;
  return block;
}

// ---- Time and chance. -------------------------------------------------------------------------------------------

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

inline void relax(unsigned& spins) {  // waits, and lets others run on a machine with fewer cores than threads
  if (++spins % 256 == 0) std::this_thread::yield();
  __builtin_ia32_pause();
}

// ---- Workers. ---------------------------------------------------------------------------------------------------

struct Stamp {
  double start = 0;
  double end = 0;
  double cpu = 0;
  void begin() {
    cpu = -thread_cpu_time();
    start = now();
  }
  void finish() {
    end = now();
    cpu += thread_cpu_time();
  }
};

inline void pin_to_cpu(unsigned index) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(index % std::thread::hardware_concurrency(), &cpus);
  pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
}

struct Span {
  double elapsed = 0;      // first start to last end
  double cpu_share = 0;    // how much of a CPU each worker had: below one when others took the machine
};

// Runs work(index) on that many threads at once.
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
  Stamp all = stamps[0];
  Span span;
  double cpu = 0;
  double wall = 0;
  for (const Stamp& stamp : stamps) {
    all.start = std::min(all.start, stamp.start);
    all.end = std::max(all.end, stamp.end);
    cpu += stamp.cpu;
    wall += stamp.end - stamp.start;
  }
  span.cpu_share = cpu / wall;
  span.elapsed = all.end - all.start;
  return span;
}

// ---- What the kernel says about this process; reading it allocates nothing. ---------------------------------------

inline long kernel_kb(const char* path, const char* field) {
  char text[4096];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  const char* line = std::strstr(text, field);
  return line == nullptr ? 0 : std::strtol(line + std::strlen(field), nullptr, 10);
}
// Counted page by page; the counter behind VmRSS is late by up to a batch per CPU.
inline long resident_kb() { return kernel_kb("/proc/self/smaps_rollup", "\nRss:"); }
inline long peak_resident_kb() { return kernel_kb("/proc/self/status", "VmHWM:"); }

// ---- Arguments: --name value. -----------------------------------------------------------------------------------

class Arguments {
 public:
  Arguments(int count, char** values) : values_(values + 1, values + count) {}
  std::string text(const std::string& name, const std::string& otherwise) const {
    for (std::size_t i = 0; i + 1 < values_.size(); i += 2) {
      if (values_[i] == "--" + name) return values_[i + 1];
    }
    return otherwise;
  }
  double number(const std::string& name, double otherwise) const {
    std::string value = text(name, "");
    return value.empty() ? otherwise : std::stod(value);
  }
  unsigned count(const std::string& name, unsigned otherwise) const {
    return static_cast<unsigned>(number(name, otherwise));
  }
  bool has(const std::string& name, const std::string& value) const {  // absent means all
    std::string list = text(name, "");
    return list.empty() || ("," + list + ",").find("," + value + ",") != std::string::npos;
  }

 private:
  std::vector<std::string> values_;
};

// ---- The result: one JSON line on standard output. ----------------------------------------------------------------

// The file that malloc comes from: the runner compares it with the allocator it meant to load.
inline const char* malloc_library() {
  Dl_info info{};
  void* symbol = dlsym(RTLD_DEFAULT, "malloc");
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
}

struct Result {
  std::string workload;
  std::string label;
  unsigned threads = 1;
  double ops = 0;
  double ns_per_op = 0;
  std::string more = {};  // further "name":value pairs, each with a comma before it
};

inline std::string field(const char* name, double value) {
  char text[96];
  std::snprintf(text, sizeof text, ",\"%s\":%.6g", name, value);
  return text;
}

inline void report(const Result& result) {
  long peak = peak_resident_kb();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  std::printf("{\"workload\":\"%s\",\"case\":\"%s\",\"api\":\"%s\",\"threads\":%u,\"ops\":%.0f,\"ns_per_op\":%.4f,"
              "\"vm_hwm_kb\":%ld,\"minor_faults\":%ld,\"cpu_s\":%.4f,\"malloc_library\":\"%s\"%s}\n",
              result.workload.c_str(), result.label.c_str(), kApi, result.threads, result.ops, result.ns_per_op, peak,
              usage.ru_minflt, cpu, malloc_library(), result.more.c_str());
  std::fflush(stdout);
}

}  // namespace bench
