// mix: a production mix, drawn by lot (mixes.h): sizes from 8 B to 4 MB, lifetimes over six decades, call sites, phases.
// Then the rush is over: the blocks that last stay, the threads sleep, and each makes a few calls.
//
//   mix --mix SEED [--threads 1] [--handover 0] [--steps 4000000] [--idle 1]
//
// steps: mallocs of all threads.  handover: of 100 blocks, so many are freed by the next thread of a ring.  idle: seconds.
// Each block has a stamp at both ends, which is looked at before it is freed, and one byte written on each page between.
//   peak_over_live   growth of the resident set at its peak, over the most bytes that were live
//   held_over_live   the same over time: the sum of 32 looks, over the sum of what was live at them
//   left_over_live   the same after idleness, over the bytes of the blocks that stay
// ns_per_op is wall time; cpu_ns_per_op the CPU time of all threads.  Neither has the idleness.
//
// How it misleads: it is a lottery, not a program: neighbours in time know nothing of each other, and nobody reads what was
// written, so locality is worth less than it is to programs.  Large blocks are touched and not filled.  A block that is
// handed over counts as live until the other thread has freed it, and with more threads than CPUs that takes long.  What
// the allocator had resident before the first call is not counted.
#include <cinttypes>

#include "common.h"
#include "mixes.h"

namespace {

using namespace bench;

struct Block {
  char* address;
  std::uint32_t size;
  std::uint32_t stamp;
};

constexpr std::size_t kPage = 4096;

void write_stamps(const Block& block) {
  std::memcpy(block.address, &block.stamp, sizeof block.stamp);
  for (std::size_t at = kPage; at + kPage < block.size; at += kPage) block.address[at] = 1;
  std::memcpy(block.address + block.size - sizeof block.stamp, &block.stamp, sizeof block.stamp);
}

void release(const Block& block) {
  std::uint32_t first;
  std::uint32_t last;
  std::memcpy(&first, block.address, sizeof first);
  std::memcpy(&last, block.address + block.size - sizeof last, sizeof last);
  if (first != block.stamp || last != block.stamp) {
    std::fprintf(stderr, "mix: a block of %" PRIu32 " bytes changed while it was live\n", block.size);
    std::_Exit(1);
  }
  shared::release(block.address, block.size);
}

// What all threads together have live; each says now and then by how much it has changed.
class Live {
 public:
  void add(std::int64_t change) {
    std::int64_t now = bytes_.fetch_add(change, std::memory_order_relaxed) + change;
    for (std::int64_t most = most_.load(std::memory_order_relaxed);
         now > most && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed);) {}
  }
  double bytes() const { return static_cast<double>(bytes_.load(std::memory_order_relaxed)); }
  double most() const { return static_cast<double>(most_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::int64_t> most_{0};
};

// Blocks that one thread hands to the next.  There is room for all of them, so nobody ever waits.
class Outbox {
 public:
  explicit Outbox(std::size_t room) : blocks_(room, Pages::resident) {}
  void send(const Block& block) {  // by the one
    std::size_t sent = sent_.load(std::memory_order_relaxed);
    blocks_[sent] = block;
    sent_.store(sent + 1, std::memory_order_release);
  }
  template <class Use>
  void receive(Use use) {  // by the other
    for (std::size_t sent = sent_.load(std::memory_order_acquire); received_ < sent; ++received_) use(blocks_[received_]);
  }

 private:
  Mapped<Block> blocks_;
  alignas(128) std::atomic<std::size_t> sent_{0};
  alignas(128) std::size_t received_ = 0;
};

// Where all threads wait, asleep, until all have arrived.
class Gate {
 public:
  explicit Gate(unsigned threads) : threads_(threads) {}
  void pass() {
    unsigned arrived = arrived_.fetch_add(1) + 1;
    if (arrived == threads_) arrived_.notify_all();
    for (; arrived < threads_; arrived = arrived_.load()) arrived_.wait(arrived);
  }

 private:
  const unsigned threads_;
  std::atomic<unsigned> arrived_{0};
};

// The resident set over time.  VmRSS lags by a few pages, and takes microseconds.
class Watch {
 public:
  void look(double before_kb, const Live& live) {
    resident_ += static_cast<double>(kernel_kb("/proc/self/status", "VmRSS:")) - before_kb;
    live_ += live.bytes() / 1024;
  }
  double over_live() const { return resident_ / live_; }

 private:
  double resident_ = 0;
  double live_ = 0;
};

class alignas(128) Player {
 public:
  Player(const Mix& mix, std::uint32_t steps, unsigned threads, std::uint32_t handover, std::uint32_t seed, unsigned index,
         Live& live, Facts& facts)
      : script_(mix, steps, threads, handover, (std::uint64_t{seed} << 32) + index, facts),
        blocks_(script_.slots(), Pages::resident),
        outbox_(script_.handed_over()),
        stamp_(index * 0x9E3779B9u + 1),
        live_(live) {}

  void follows(Player& before) { inbox_ = &before.outbox_; }

  // Calls look() 32 times on the way.
  template <class Look>
  void play(Look look) {
    std::span<const MixCall> calls = script_.calls();
    const std::size_t between = calls.size() / kLooks / kBatch * kBatch + kBatch;
    for (std::size_t at = 0; at < calls.size(); at += kBatch) {
      for (const MixCall& call : calls.subspan(at, std::min(kBatch, calls.size() - at))) perform(call);
      receive();
      if (at % between == 0) look();
    }
  }

  void receive() {
    inbox_->receive([&](const Block& block) { discard(block); });
    account();
  }

  void release_survivors() {
    for (Block& block : blocks_.all()) {
      if (block.size > 0) discard(block);
    }
  }

 private:
  static constexpr std::size_t kBatch = 64;
  static constexpr std::size_t kLooks = 32;
  static constexpr std::uint32_t kWeighty = 64 << 10;  // bytes: what is live is told at once

  void perform(const MixCall& call) {
    Block& block = blocks_[call.slot & ~MixCall::kHandOver];
    if (call.size > 0) {
      stamp_ += 2 * 0x9E3779B9u;
      block = {static_cast<char*>(shared::allocate(call.size)), call.size, stamp_};
      write_stamps(block);
      change_ += call.size;
      if (call.size >= kWeighty) account();
    } else if (call.slot & MixCall::kHandOver) {
      outbox_.send(block);
      block.size = 0;
    } else {
      discard(block);
      block.size = 0;
    }
  }

  void discard(const Block& block) {
    release(block);
    change_ -= block.size;
    if (block.size >= kWeighty) account();
  }

  void account() {
    if (change_ != 0) live_.add(change_);
    change_ = 0;
  }

  Script script_;
  Mapped<Block> blocks_;
  Outbox outbox_;
  Outbox* inbox_ = &outbox_;
  std::uint32_t stamp_;
  std::int64_t change_ = 0;
  Live& live_;
};

void few_calls(std::uint64_t seed) {
  Random random(seed);
  for (int i = 0; i < 100; ++i) {
    std::size_t size = 16 + random.below(1000);
    shared::release(shared::allocate_touched(size), size);
  }
}

// From here on, VmHWM is the peak.  Where that is forbidden, it has the short-lived tables of the drawing, a few bytes a step.
void forget_peak() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

struct Measured {
  double before_kb = 0;
  double peak_kb = 0;
  double left_kb = 0;
  Watch watch;
};

// The threads' way through the run.  After each gate only the first measures, and the others sleep before the next.
class Run {
 public:
  Run(std::vector<std::unique_ptr<Player>>& players, Live& live, double idle)
      : players_(players),
        live_(live),
        idle_(idle),
        stamps_(2 * players.size()),
        gates_{Gate(count()), Gate(count()), Gate(count()), Gate(count())} {
    forget_peak();
    measured.before_kb = static_cast<double>(resident_kb());
  }

  void work(unsigned index) {
    Player& player = *players_[index];
    timed(index, [&] {
      player.play([&] {
        if (index == 0) measured.watch.look(measured.before_kb, live_);
      });
    });
    gates_[0].pass();
    timed(index + count(), [&] { player.receive(); });  // what came after its own end
    gates_[1].pass();
    if (index == 0) measured.peak_kb = static_cast<double>(kernel_kb("/proc/self/status", "VmHWM:")) - measured.before_kb;
    std::this_thread::sleep_for(std::chrono::duration<double>(idle_));
    few_calls(index + 1);
    gates_[2].pass();
    if (index == 0) measured.left_kb = static_cast<double>(resident_kb()) - measured.before_kb;
    gates_[3].pass();
    player.release_survivors();
  }

  // Waiting at a gate counts as time, and not as a thread that was kept from its CPU.
  Span span() const { return {span_of(stamps_).elapsed, span_of({stamps_.begin(), stamps_.begin() + count()}).cpu_share}; }
  double cpu() const {
    double seconds = 0;
    for (const Stamp& stamp : stamps_) seconds += stamp.cpu;
    return seconds;
  }

  Measured measured;

 private:
  unsigned count() const { return static_cast<unsigned>(players_.size()); }
  template <class Work>
  void timed(unsigned index, Work work) {
    stamps_[index].begin();
    work();
    stamps_[index].finish();
  }

  std::vector<std::unique_ptr<Player>>& players_;
  Live& live_;
  const double idle_;
  std::vector<Stamp> stamps_;
  Gate gates_[4];
};

std::string described(const Facts& facts) {
  double decades = static_cast<double>(
      std::count_if(facts.by_decade.begin(), facts.by_decade.end() - 1, [](double blocks) { return blocks > 0; }));
  return field("digest", facts.digest) + field("small_share", facts.small / facts.blocks) +
         field("small_byte_share", facts.small_bytes / facts.bytes) +
         field("at_once_share", (facts.small_at_once + facts.large_at_once) / facts.blocks) +
         field("small_at_once_share", facts.small_at_once / facts.small) +
         field("large_at_once_share", facts.large_at_once / (facts.blocks - facts.small)) + field("decades", decades) +
         field("handed_over_share", facts.handed_over / (facts.blocks - facts.survivors)) +
         field("survivors", facts.survivors) + field("survivors_kb", facts.surviving_bytes / 1024);
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  std::uint32_t seed = arguments.count("mix", 1);
  unsigned threads = arguments.count("threads", 1, 1, 1024);
  std::uint32_t handover = arguments.count("handover", 0, 0, 100);
  std::uint32_t steps = arguments.count("steps", kRun, 1000 * threads, 100'000'000);
  double idle = arguments.seconds("idle", 1);
  arguments.finish();
  if (handover > 0 && threads == 1) arguments.refuse("--handover needs --threads 2 or more");

  const Mix mix(seed);
  Live live;
  Facts facts;
  std::vector<std::unique_ptr<Player>> players;
  for (unsigned i = 0; i < threads; ++i) {
    players.push_back(std::make_unique<Player>(mix, steps / threads, threads, handover, seed, i, live, facts));
  }
  for (unsigned i = 0; i < threads; ++i) players[i]->follows(*players[(i + threads - 1) % threads]);

  Run run(players, live, idle);
  if (threads == 1) {
    run_here([&] { run.work(0); });
  } else {
    run_workers(threads, false, [&](unsigned index) { run.work(index); });
  }

  const Measured& found = run.measured;
  double most_kb = live.most() / 1024;
  report("mix", threads, facts.blocks, run.span(),
         field("cpu_ns_per_op", run.cpu() * 1e9 / facts.blocks) + field("peak_over_live", found.peak_kb / most_kb) +
             field("held_over_live", found.watch.over_live()) +
             field("left_over_live", found.left_kb / (facts.surviving_bytes / 1024)) + field("live_kb", most_kb) +
             field("left_kb", found.left_kb) + described(facts));
}
