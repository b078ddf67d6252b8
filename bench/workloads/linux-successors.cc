// linux-successors (Lever and Boreham, benchmark 2: sections 4.2 and 5.2, Figures 5 to 8): the main thread allocates
// 10,000 objects of 40 bytes for each of several threads.  A thread replaces a random half of its objects, one at a
// time, hands them to a new thread, its successor, and ends; that is a round.  The program never needs more memory than
// at the start: page faults beyond that show memory that the allocator lost track of when its threads ended.  An
// operation is a free and the malloc in its place.
//
//   linux-successors [--threads 1] [--rounds 1] [--objects 10000]
//
// minor_faults is the whole process, as in the paper; predicted_faults is the paper's lower bound,
// 14 + 1.1 * threads * rounds + 127.6 * threads (for 10,000 objects; the last term grows with them);
// faults_since_start leaves out what came before the first object.
//
// How it misleads: the paper's process had 14 faults of its own and pointers of four bytes.  Today loading the program
// and its libraries, the allocator's among them, costs some hundred faults, and the pointers another 10 for each
// thread; so compare allocators by faults_since_start, and its growth over the rounds with the paper's 1.1 for each
// thread and round.  Memory that an allocator takes early, or in huge pages, shows few faults without being little; and
// the threads' stacks count too.
#include <latch>

#include "common.h"

namespace {

using namespace bench;

constexpr std::size_t kSize = 40;
constexpr double kPaperObjects = 10'000;

struct Line {  // of threads, each the successor of the one before
  std::vector<void*> objects;
  Random random;
  unsigned rounds_left;
  Stamp stamp{};  // processor time: of all its threads
  double replaced = 0;
};

void replace_and_hand_over(Line& line, std::latch& ended) {
  line.stamp.cpu -= thread_cpu_time();
  for (void*& object : line.objects) {
    if ((line.random.next() & 1) == 0) continue;
    shared::release(object, kSize);
    object = shared::allocate_touched(kSize);
    ++line.replaced;
  }
  line.stamp.finish();
  if (--line.rounds_left > 0) {
    start_detached([&line, &ended] { replace_and_hand_over(line, ended); });
  } else {
    ended.count_down();
  }
}

double page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}

std::vector<Line> allocate_objects(unsigned threads, unsigned rounds, std::uint32_t objects) {
  std::vector<Line> lines;
  for (unsigned index = 0; index < threads; ++index) {
    lines.push_back({std::vector<void*>(objects), Random(index + 1), rounds});
    for (void*& object : lines.back().objects) object = shared::allocate_touched(kSize);
  }
  return lines;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  unsigned rounds = arguments.count("rounds", 1);
  std::uint32_t objects = arguments.count("objects", 10'000, 100);
  arguments.finish();

  const double faults_before = page_faults();
  std::vector<Line> lines = allocate_objects(threads, rounds, objects);
  std::latch ended(threads);
  std::latch started(threads);
  for (Line& line : lines) {
    start_detached([&] {
      started.arrive_and_wait();
      line.stamp.start = now();
      replace_and_hand_over(line, ended);
    });
  }
  ended.wait();
  const double faults = page_faults() - faults_before;

  std::vector<Stamp> stamps;
  double replaced = 0;
  for (const Line& line : lines) {
    stamps.push_back(line.stamp);
    replaced += line.replaced;
  }
  double predicted = 14 + 1.1 * threads * rounds + 127.6 * threads * objects / kPaperObjects;
  report("linux-successors", threads, replaced, span_of(stamps),
         field("faults_since_start", faults) + field("predicted_faults", predicted));
}
