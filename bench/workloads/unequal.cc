// unequal (VVMalloc, Figures 1 to 3 and 6): threads with different work.  There are 16 traces, the starred ones of the
// paper's Figure 1, with its names and numbers of calls.  Of T threads, thread i plays traces i, i + T, i + 2T and so
// on, one after the other, so the work is the same for any number of threads.  With one thread this is the paper's
// sequential run; with 16, each plays a trace of its own.  An operation is a malloc with its free; the paper counts
// them separately.
//
//   unequal [--threads 1] [--repeats 5]
//
// --repeats: how often each thread plays its traces; each play ends with every block freed. thread_ns_per_op adds up
// the threads' own times, as the paper's tables do; ns_per_op is wall time. payload_kb is the most that the traces
// request at once: of the largest with one thread, otherwise a sum over the threads.
//
// How it misleads: the traces themselves are not in the paper.  These follow what their names suggest: bdd and cbit are
// packages of decision diagrams (nodes of one size, collected as garbage; a table that doubles), ngram reads a text
// into short strings and keeps them, syn is random.  With more threads than CPUs, thread_ns_per_op also counts waiting
// for a CPU, which is not the allocator's fault.  The longest trace has 20 times the calls of the shortest: with many
// threads the run ends with a few of them, and no allocator reaches a speed-up of 16.
#include <algorithm>
#include <array>

#include "calls.h"
#include "common.h"

namespace {

using namespace bench;

// Writes a trace: so many blocks, each freed at the end if not before.
class Script {
 public:
  explicit Script(std::uint32_t pairs) : left_(pairs) { calls.reserve(2 * std::size_t{pairs}); }

  std::uint32_t left() const { return left_; }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::uint64_t most_payload() const { return most_payload_; }

  std::uint32_t allocate(std::uint32_t size) {
    std::uint32_t slot = free_.empty() ? slots() : free_.back();
    if (free_.empty()) {
      sizes_.push_back(size);
    } else {
      free_.pop_back();
      sizes_[slot] = size;
    }
    calls.push_back({slot, size});
    payload_ += size;
    most_payload_ = std::max(most_payload_, payload_);
    --left_;
    return slot;
  }
  void release(std::uint32_t slot) {
    calls.push_back({slot, 0});
    payload_ -= sizes_[slot];
    sizes_[slot] = 0;
    free_.push_back(slot);
  }
  void release_all() {
    for (std::uint32_t slot = 0; slot < slots(); ++slot) {
      if (sizes_[slot] > 0) release(slot);
    }
  }

  std::vector<Call> calls;

 private:
  std::uint32_t left_;
  std::uint64_t payload_ = 0;
  std::uint64_t most_payload_ = 0;
  std::vector<std::uint32_t> sizes_;  // by slot; 0: free
  std::vector<std::uint32_t> free_;
};

// A hash table over what is live; its array doubles as it fills.
class Table {
 public:
  explicit Table(Script& script) : script_(script), slot_(script.allocate(kEntry * entries_)) {}
  void hold(std::size_t live) {
    if (live <= entries_ || script_.left() == 0) return;
    entries_ *= 2;
    std::uint32_t larger = script_.allocate(kEntry * entries_);
    script_.release(slot_);
    slot_ = larger;
  }

 private:
  static constexpr std::uint32_t kEntry = 8;
  Script& script_;
  std::uint32_t entries_ = 256;
  std::uint32_t slot_;
};

// bdd, cbit: nodes of one size; whenever there are many, those found dead are freed, wherever they are.
void diagram(Script& script, Random& random) {
  constexpr std::uint32_t kNode = 40;
  const std::size_t many = script.left() / 4;
  Table table(script);
  std::vector<std::uint32_t> live;
  while (script.left() > 0) {
    live.push_back(script.allocate(kNode));
    table.hold(live.size());
    if (live.size() < many) continue;
    std::erase_if(live, [&](std::uint32_t slot) {
      bool dead = random.below(2) == 0;
      if (dead) script.release(slot);
      return dead;
    });
  }
}

// ngram: strings, and a list element for each; all stay to the end.
void text(Script& script, Random& random) {
  constexpr std::uint32_t kElement = 24;
  Table table(script);
  for (std::size_t strings = 1; script.left() > 0; ++strings) {
    script.allocate(mostly_tiny(random));
    if (script.left() > 0) script.allocate(kElement);
    table.hold(strings);
  }
}

// syn: a thousand blocks, of which a random one is replaced, over and over.
template <std::uint32_t (*draw_size)(Random&)>
void random_blocks(Script& script, Random& random) {
  std::vector<std::uint32_t> live;
  while (live.size() < 1000 && script.left() > 0) live.push_back(script.allocate(draw_size(random)));
  while (script.left() > 0) {
    std::uint32_t& slot = live[random.below(static_cast<std::uint32_t>(live.size()))];
    script.release(slot);
    slot = script.allocate(draw_size(random));
  }
}

std::uint32_t one_of_few(Random& random) { return 16 + 24 * random.below(8); }

struct Trace {
  const char* name;
  std::uint32_t calls;
  void (*draw)(Script&, Random&);
};

constexpr std::array<Trace, 16> kTraces = {{
    {"bdd-aa4", 5748, diagram},
    {"bdd-aa32", 87830, diagram},
    {"bdd-ma4", 41080, diagram},
    {"bdd-nq7", 115380, diagram},
    {"cbit-abs", 20547, diagram},
    {"cbit-parity", 95276, diagram},
    {"cbit-satadd", 89623, diagram},
    {"cbit-xyz", 50583, diagram},
    {"ngram-gulliver1", 32540, text},
    {"ngram-gulliver2", 127912, text},
    {"ngram-moby1", 67012, text},
    {"ngram-shake1", 94828, text},
    {"syn-array", 80000, random_blocks<large>},
    {"syn-mix", 80000, random_blocks<mixed>},
    {"syn-string", 80000, random_blocks<mostly_tiny>},
    {"syn-struct", 80000, random_blocks<one_of_few>},
}};

// What one thread plays, and room for its blocks.
struct Hand {
  std::vector<std::vector<Call>> traces;
  std::vector<Block> blocks;
  std::uint64_t payload = 0;
  double seconds = 0;
};

std::vector<Hand> deal(unsigned threads) {
  std::vector<Hand> hands(threads);
  for (std::size_t index = 0; index < kTraces.size(); ++index) {
    Script script(kTraces[index].calls / 2);
    Random random(index + 1);
    kTraces[index].draw(script, random);
    script.release_all();
    Hand& hand = hands[index % threads];
    hand.blocks.resize(std::max<std::size_t>(hand.blocks.size(), script.slots()));
    hand.payload = std::max(hand.payload, script.most_payload());
    hand.traces.push_back(std::move(script.calls));
  }
  return hands;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.count("threads", 1, 1, static_cast<std::uint32_t>(kTraces.size()));
  std::uint32_t repeats = arguments.count("repeats", 5);
  arguments.finish();

  std::vector<Hand> hands = deal(threads);
  Span span = run_workers(threads, false, [&](unsigned index) {
    Hand& hand = hands[index];
    double start = now();
    for (std::uint32_t i = 0; i < repeats; ++i) {
      for (const std::vector<Call>& trace : hand.traces) play(trace, hand.blocks);
    }
    hand.seconds = now() - start;
  });

  double ops = 0, seconds = 0, payload = 0;
  for (const Trace& trace : kTraces) ops += trace.calls / 2;
  ops *= repeats;
  for (const Hand& hand : hands) {
    seconds += hand.seconds;
    payload += static_cast<double>(hand.payload);
  }
  report("unequal", threads, ops, span,
         field("thread_ns_per_op", seconds * 1e9 / ops) + field("payload_kb", payload / 1024));
}
