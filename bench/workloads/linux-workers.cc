// linux-workers (Lever and Boreham, "malloc() Performance in a Multithreaded Linux Environment", benchmark 1: sections
// 4.1 and 5.1, Tables 1 to 4, Figures 1 to 4): every worker allocates and frees one block at a time.  The workers are
// the threads of one process, which share an allocator, or processes, each with its own; without contention in the
// allocator there is no difference.  An operation is a malloc with its free.
//
//   linux-workers [--mode threads|processes] [--size 512] [--threads 2] [--pairs 10000000]
//
// --pairs is each worker's.  worker_s_mean and worker_s_stddev are over the workers' own times, as in the tables;
// processes is the number of processes that the workers ran in.
//
// How it misleads: the block just freed is the block allocated next, which any cache of one block serves; sizes above
// an allocator's cache limit measure something else altogether.  glibc skips its locks in a process that never had a
// second thread, so part of the difference between the modes is not contention.  In mode processes, memory and page
// faults are only the parent's.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cmath>
#include <new>
#include <set>

#include "common.h"

namespace {

using namespace bench;

constexpr unsigned kMaxWorkers = 1024;

// In memory that forked workers share, so that they can meet at the start line and report their times.
struct Board {
  std::atomic<unsigned> arrived{0};
  std::array<Stamp, kMaxWorkers> stamps{};
  std::array<pid_t, kMaxWorkers> processes{};
};

Board& map_board() {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return *new (memory) Board;
}

void work(Board& board, unsigned index, unsigned workers, std::size_t size, std::uint32_t pairs) {
  board.arrived.fetch_add(1);
  for (unsigned spins = 0; board.arrived.load() < workers;) relax(spins);
  Stamp stamp;
  stamp.begin();
  for (std::uint32_t i = 0; i < pairs; ++i) local::release(local::allocate_touched(size), size);
  stamp.finish();
  board.stamps[index] = stamp;
  board.processes[index] = getpid();
}

template <class Work>
void run_threads(unsigned workers, Work work_as) {
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < workers; ++index) threads.emplace_back(work_as, index);
  for (auto& thread : threads) thread.join();
}

[[noreturn]] void fail(const char* reason) {  // and the kernel ends the children
  std::fprintf(stderr, "linux-workers: %s\n", reason);
  std::exit(1);
}

template <class Work>
void run_processes(unsigned workers, Work work_as) {
  const pid_t parent = getpid();
  for (unsigned index = 0; index < workers; ++index) {
    pid_t child = fork();
    if (child < 0) fail("cannot fork");
    if (child == 0) {
      // Otherwise the others would wait for ever at the start line if one of them dies before it.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() == parent) work_as(index);
      _exit(0);
    }
  }
  for (unsigned index = 0; index < workers; ++index) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) fail("a worker process died");
  }
}

std::string spread_over_workers(const std::vector<Stamp>& stamps) {
  double sum = 0;
  double squares = 0;
  for (const Stamp& stamp : stamps) sum += stamp.end - stamp.start;
  double count = static_cast<double>(stamps.size());
  double mean = sum / count;
  for (const Stamp& stamp : stamps) squares += std::pow(stamp.end - stamp.start - mean, 2);
  double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return field("worker_s_mean", mean) + field("worker_s_stddev", deviation);
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  bool threaded = arguments.choice("mode", {"threads", "processes"}) == "threads";
  std::size_t size = arguments.count("size", 512);
  unsigned workers = arguments.count("threads", 2, 1, kMaxWorkers);
  std::uint32_t pairs = arguments.count("pairs", 10'000'000);
  arguments.finish();

  Board& board = map_board();
  auto work_as = [&](unsigned index) { work(board, index, workers, size, pairs); };
  if (threaded) {
    run_threads(workers, work_as);
  } else {
    run_processes(workers, work_as);
  }

  std::vector<Stamp> stamps(board.stamps.begin(), board.stamps.begin() + workers);
  std::set<pid_t> processes(board.processes.begin(), board.processes.begin() + workers);
  report("linux-workers", workers, static_cast<double>(workers) * pairs, span_of(stamps),
         spread_over_workers(stamps) + field("processes", static_cast<double>(processes.size())));
}
