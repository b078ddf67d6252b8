// exchange: threads in a ring, with 1024 live messages each.  A step replaces a random one of them with a new one; the
// replaced one is freed where it was made, or sent to the next thread, which reads and frees it.  All memory is shared.
// An operation is a step: one malloc and one free.
//
//   exchange [--shape symmetric|asymmetric] [--size 64] [--threads 2] [--seconds 0.2] [--pin 0] [--latency FILE]
//
//   symmetric    every thread sends half of what it replaces
//   asymmetric   servers and clients alternate around the ring: a server sends 7 of 8, a client 1 of 8, so memory flows
//                from one to the other.  The number of threads is even, and none goes far ahead of the next: otherwise
//                an allocator that slows the servers down would let the clients make more of the cheap steps
//
// thread_ns_per_op is thread time, not wall time, per step: it does not depend on the number of threads if they do not
// disturb each other.  server_sent_share and server_received_share are messages per step of the first thread,
// client_sent_share of the second.
//
// How it misleads: the live table, the random choice and the queue cost several nanoseconds, the same for all
// allocators; a thread that waits for room in the next one's inbox counts as busy.  Only the first word of a message is
// written and read, so the cost of large messages is understated.  An allocator that leaves freed foreign blocks with
// the freeing thread looks good here even if it spreads the blocks of one line over two threads for ever.
#include <array>
#include <memory>

#include "common.h"
#include "spsc_queue.h"

namespace {

using namespace bench;

constexpr std::size_t kLive = 1024;
constexpr std::size_t kBatch = 32;
struct Inbox {
  SpscQueue<1024, kBatch> messages;
  alignas(128) std::atomic<std::uint64_t> owner_steps{0};
};

constexpr std::uint32_t kHalf = 4;  // eighths
constexpr std::uint32_t kServer = 7;
constexpr std::uint32_t kClient = 1;

struct Counts {
  double steps = 0;
  double sent = 0;
  double busy = 0;  // seconds
};

template <class Sampler>
class Side {
 public:
  // eighths: how many eighths of the replaced messages are sent.
  Side(std::size_t size, std::uint32_t eighths, Inbox& own, Inbox& next, Sampler& sampler, std::uint64_t seed)
      : size_(size), eighths_(eighths), own_(own), next_(next), sampler_(sampler), random_(seed) {}

  // Keeps emptying its inbox until the last side has made its steps, so that none waits for ever before a full outbox.
  void run(double seconds, std::atomic<unsigned>& running) {
    for (void*& message : live_) message = make();
    double start = now();
    for (; busy_ < seconds; busy_ = now() - start) {
      for (unsigned i = 0; i < kSteps; ++i) step();
      steps_ += kSteps;
      if (eighths_ != kHalf) keep_pace(start + seconds);
    }
    next_.messages.flush();
    running.fetch_sub(1);
    for (unsigned spins = 0; running.load() > 0; relax(spins)) drain();
  }

  Counts finish() {  // after the threads have ended
    drain();
    for (void* message : live_) shared::release(message, size_);
    return {static_cast<double>(steps_), static_cast<double>(next_.messages.pushed()), busy_};
  }

 private:
  static constexpr unsigned kSteps = 1024;

  void* make() {
    void* message = sampler_.allocation([&] { return shared::allocate(size_); });
    *static_cast<std::uint64_t*>(message) = ++made_;
    return message;
  }

  void discard(void* message) {
    sampler_.freeing([&] { shared::release(message, size_); });
  }

  void step() {
    std::uint32_t choice = random_.next();
    void*& slot = live_[choice % kLive];
    void* old = slot;
    slot = make();
    if (choice >> 29 < eighths_) {
      send(old);
    } else {
      discard(old);
    }
    if (made_ % kBatch == 0) drain();
  }

  void send(void* message) {
    for (unsigned spins = 0; !next_.messages.push(message); relax(spins)) drain();
  }

  void keep_pace(double end) {
    own_.owner_steps.store(steps_, std::memory_order_relaxed);
    for (unsigned spins = 0; steps_ > next_.owner_steps.load(std::memory_order_relaxed) + kSteps; relax(spins)) {
      if (now() > end) return;
      drain();
    }
  }

  void drain() {
    for (void* message = nullptr; own_.messages.pop(message);) {
      read_ += *static_cast<const volatile std::uint64_t*>(message);
      discard(message);
    }
  }

  const std::size_t size_;
  const std::uint32_t eighths_;
  Inbox& own_;
  Inbox& next_;
  Sampler& sampler_;
  Random random_;
  std::uint64_t made_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t steps_ = 0;
  double busy_ = 0;
  std::array<void*, kLive> live_{};
};

struct Setting {
  bool symmetric;
  std::size_t size;
  unsigned threads;
  double seconds;
  bool pin;

  std::uint32_t eighths(unsigned index) const { return symmetric ? kHalf : index % 2 == 0 ? kServer : kClient; }
};

template <class Sampler>
Span exchange(const Setting& setting, std::vector<Sampler>& samplers, std::vector<Counts>& counts) {
  const unsigned threads = setting.threads;
  std::vector<std::unique_ptr<Inbox>> inboxes;
  std::vector<std::unique_ptr<Side<Sampler>>> sides(threads);
  for (unsigned i = 0; i < threads; ++i) inboxes.push_back(std::make_unique<Inbox>());
  std::atomic<unsigned> running{threads};
  Span span = run_workers(threads, setting.pin, [&](unsigned index) {
    sides[index] = std::make_unique<Side<Sampler>>(setting.size, setting.eighths(index), *inboxes[index],
                                                   *inboxes[(index + 1) % threads], samplers[index], index + 1);
    sides[index]->run(setting.seconds, running);
  });
  for (auto& side : sides) counts.push_back(side->finish());
  return span;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  bool symmetric = arguments.choice("shape", {"symmetric", "asymmetric"}) == "symmetric";
  std::size_t size = arguments.count("size", 64, sizeof(std::uint64_t));
  unsigned threads = arguments.threads(2, 2);
  Setting setting{symmetric, size, threads, arguments.seconds("seconds", 0.2), arguments.flag("pin")};
  std::string latency = arguments.text("latency", "");
  arguments.finish();
  if (!symmetric && threads % 2 != 0) arguments.refuse("--shape asymmetric needs an even number of --threads");

  std::vector<Counts> counts;
  Sampled run = run_sampled(latency, threads, [&](auto& samplers) { return exchange(setting, samplers, counts); });
  double steps = 0;
  double busy = 0;
  for (const Counts& each : counts) {
    steps += each.steps;
    busy += each.busy;
  }
  run.span.elapsed = busy / threads;  // filling the tables before and emptying the inboxes afterwards are not counted
  report("exchange", threads, steps, run.span,
         field("thread_ns_per_op", busy / steps * 1e9) + field("server_sent_share", counts[0].sent / counts[0].steps) +
             field("server_received_share", counts.back().sent / counts[0].steps) +
             field("client_sent_share", counts[1].sent / counts[1].steps) + run.fields);
}
