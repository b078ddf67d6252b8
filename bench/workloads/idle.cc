// idle: the cost of a thread that allocated once and then sleeps.  Resident kilobytes per thread: the growth of the
// resident set from just before the threads are started until all have allocated, divided by their number.
//
//   idle [--threads 1000] [--size 64]        --size 0: threads that allocate nothing, for comparison
//
// How it misleads: the figure contains the thread's stack and descriptor (about 8-12 KB, see --size 0), which are not
// the allocator's, and does not contain the kernel's share of a thread.
#include <condition_variable>
#include <mutex>

#include "common.h"

int main(int count, char** values) {
  using namespace bench;
  Arguments arguments(count, values);
  unsigned threads = arguments.threads(1000);
  std::size_t size = arguments.count("size", 64, 0);
  arguments.finish();

  std::mutex mutex;
  std::condition_variable arrived;
  std::condition_variable leaving;
  unsigned sleeping = 0;
  bool leave = false;
  std::vector<std::thread> workers;
  workers.reserve(threads);
  resident_kb();
  long before = resident_kb();
  double start = now();
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      void* block = size == 0 ? nullptr : local::allocate_touched(size);
      std::unique_lock lock(mutex);
      ++sleeping;
      arrived.notify_one();
      leaving.wait(lock, [&] { return leave; });
      lock.unlock();
      if (block != nullptr) local::release(block, size);
    });
    // One at a time: all are alive in the end, and none has to wait for a lock, which would touch more of its stack.
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return sleeping == i + 1; });
  }
  double elapsed = now() - start;
  long after = resident_kb();
  {
    std::lock_guard lock(mutex);
    leave = true;
  }
  leaving.notify_all();
  for (auto& worker : workers) worker.join();
  report("idle", threads, threads, {.elapsed = elapsed},
         field("kb_per_thread", static_cast<double>(after - before) / threads));
}
