// exchange: threads with 1024 live messages each; a step replaces a random one of them, and of the replaced ones half
// are freed where they were made and half are sent to the next thread, which reads and frees them.
// Nanoseconds of thread time per step (one malloc, one free, one queue operation on average).
//
//   exchange [--size 32,64,256] [--threads 2] [--seconds 0.2] [--pin 1]
//
// How it misleads: the live table, the random choice and the queue cost several nanoseconds, the same for all; a
// thread that waits for the other's inbox is counted as busy.  Only the first word of a message is written and read,
// so it understates what large messages cost.  An allocator that leaves freed foreign blocks with the freeing thread
// looks good here even if it spreads the blocks of one line over two threads for ever.
#include <array>
#include <memory>

#include "common.h"
#include "spsc_queue.h"

namespace {

using namespace bench;

constexpr std::size_t kLive = 1024;
constexpr std::size_t kBatch = 32;
using Queue = SpscQueue<1024, kBatch>;

template <std::size_t Size>
class Side {
 public:
  Side(Queue& inbox, Queue& outbox, std::uint64_t seed) : inbox_(inbox), outbox_(outbox), random_(seed) {}

  // Goes on emptying its inbox until the last side has made its steps: nobody is left before a full outbox.
  void run(double seconds, std::atomic<unsigned>& running) {
    for (void*& message : live_) message = make();
    double start = now();
    for (; busy < seconds; busy = now() - start) {
      for (unsigned i = 0; i < kSteps; ++i) step();
      steps += kSteps;
    }
    outbox_.flush();
    running.fetch_sub(1);
    for (unsigned spins = 0; running.load() > 0; relax(spins)) drain();
  }

  void finish() {  // after the threads have ended
    drain();
    for (void* message : live_) release(message, Size);
  }

  double steps = 0;
  double busy = 0;  // seconds

 private:
  static constexpr unsigned kSteps = 1024;

  void* make() {
    void* message = allocate(Size);
    escape(message);
    *static_cast<std::uint64_t*>(message) = ++made_;
    return message;
  }

  void step() {
    std::uint32_t choice = random_.next();
    void*& slot = live_[choice % kLive];
    void* old = slot;
    slot = make();
    if ((choice & 0x80000000u) != 0) {
      release(old, Size);
    } else {
      send(old);
    }
    if (made_ % kBatch == 0) drain();
  }

  void send(void* message) {
    for (unsigned spins = 0; !outbox_.push(message); relax(spins)) drain();
  }

  void drain() {
    for (void* message = nullptr; inbox_.pop(message);) {
      received_ += *static_cast<const std::uint64_t*>(message);
      escape(message);
      release(message, Size);
    }
  }

  Queue& inbox_;
  Queue& outbox_;
  Random random_;
  std::uint64_t made_ = 0;
  std::uint64_t received_ = 0;
  std::array<void*, kLive> live_{};
};

template <std::size_t Size>
void measure(const Arguments& arguments) {
  if (!arguments.has("size", std::to_string(Size))) return;
  unsigned threads = arguments.count("threads", 2);
  double seconds = arguments.number("seconds", 0.2);
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Side<Size>>> sides(threads);
  for (unsigned i = 0; i < threads; ++i) queues.push_back(std::make_unique<Queue>());
  std::atomic<unsigned> running{threads};
  Span span = run_workers(threads, arguments.count("pin", 0) != 0, [&](unsigned index) {
    sides[index] = std::make_unique<Side<Size>>(*queues[index], *queues[(index + 1) % threads], index + 1);
    sides[index]->run(seconds, running);
  });
  double steps = 0;
  double busy = 0;
  for (auto& side : sides) {
    steps += side->steps;
    busy += side->busy;
    side->finish();
  }
  report({"exchange", std::to_string(Size), threads, steps, busy / steps * 1e9,
          field("cpu_share", span.cpu_share)});
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  measure<32>(arguments);
  measure<64>(arguments);
  measure<256>(arguments);
}
