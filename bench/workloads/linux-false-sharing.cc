// linux-false-sharing (Lever and Boreham, benchmark 3: sections 4.3 and 5.3, Figures 9 to 11): the main thread
// allocates an object for each thread, and each thread repeatedly writes the first and the last byte of its own.  If
// two objects share a cache line, their CPUs take turns.  One run covers object sizes from 3 to 52 bytes.  An operation
// is a write of both bytes.
//
//   linux-false-sharing [--threads 2] [--aligned 0|1] [--writes 100000000]
//
// --writes is each thread's at each size, on 8 sets of objects in turn: before each set up to three more objects of the
// size are allocated, so that the figure does not depend on where in a line a heap happens to begin.  --aligned 1 asks
// for objects on lines of their own (posix_memalign): the paper's other curve.  series is [size, ns per operation];
// shared_lines is the number of sizes at which, by their addresses, two objects share a line (a size at which they do
// in 2 of the 8 sets counts a quarter).
//
// How it misleads: today's CPUs collect writes to one line in their store buffers while the line is away, so objects
// with both ends in the same line share it at almost no cost; the figure rises if an object crosses two lines.  Sharing
// is also cheap for threads that run on one CPU.  shared_lines shows what the time hides.  One thread allocates all
// objects in a row, which tells allocators that pack them from allocators that space them, and nothing else.
#include <array>

#include "common.h"

namespace {

using namespace bench;

constexpr std::size_t kLine = 64;
constexpr std::array<std::size_t, 15> kSizes = {3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52};

constexpr unsigned kSets = 8;

struct Setting {
  unsigned threads;
  bool aligned;
  std::uint32_t writes;  // of a thread, to one object
};

char* allocate_object(std::size_t size, bool aligned) {
  if (!aligned) return static_cast<char*>(local::allocate_touched(size));
  void* object = nullptr;
  if (posix_memalign(&object, kLine, size) != 0) std::abort();
  return static_cast<char*>(object);
}

bool share_a_line(std::vector<char*> objects, std::size_t size) {
  std::sort(objects.begin(), objects.end());
  auto line = [](const char* byte) { return reinterpret_cast<std::uintptr_t>(byte) / kLine; };
  for (std::size_t i = 1; i < objects.size(); ++i) {
    if (line(objects[i - 1] + size - 1) >= line(objects[i])) return true;
  }
  return false;
}

void write_both_ends(char* object, std::size_t size, std::uint32_t writes) {
  volatile char* first = object;
  volatile char* last = object + size - 1;
  for (std::uint32_t i = 0; i < writes; ++i) {
    *first = static_cast<char>(i);
    *last = static_cast<char>(i);
  }
}

struct Sum {
  double elapsed = 0;
  double cpu = 0;
  double sets_sharing = 0;
};

Sum measure(std::size_t size, const Setting& setting) {
  Sum sum;
  Random random(size);
  std::vector<char*> all;
  all.reserve(kSets * (setting.threads + 3));
  for (unsigned set = 0; set < kSets; ++set) {
    for (std::uint32_t more = random.below(4); more > 0; --more) all.push_back(allocate_object(size, setting.aligned));
    for (unsigned i = 0; i < setting.threads; ++i) all.push_back(allocate_object(size, setting.aligned));
    std::vector<char*> objects(all.end() - setting.threads, all.end());
    Span span =
        run_workers(setting.threads, false, [&](unsigned index) { write_both_ends(objects[index], size, setting.writes); });
    sum.elapsed += span.elapsed;
    sum.cpu += span.elapsed * span.cpu_share;
    if (share_a_line(objects, size)) ++sum.sets_sharing;
  }
  for (char* object : all) local::release(object, size);
  return sum;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads(2);
  bool aligned = arguments.flag("aligned");
  std::uint32_t writes = arguments.count("writes", 100'000'000, kSets);
  arguments.finish();
  const Setting setting{threads, aligned, writes / kSets};

  const double ops_per_size = static_cast<double>(threads) * setting.writes * kSets;
  Series series;
  Sum all;
  for (std::size_t size : kSizes) {
    Sum sum = measure(size, setting);
    series.push_back({static_cast<double>(size), sum.elapsed / ops_per_size * 1e9});
    all.elapsed += sum.elapsed;
    all.cpu += sum.cpu;
    all.sets_sharing += sum.sets_sharing;
  }
  report("linux-false-sharing", threads, ops_per_size * kSizes.size(), {all.elapsed, all.cpu / all.elapsed},
         field("series", series) + field("shared_lines", all.sets_sharing / kSets));
}
