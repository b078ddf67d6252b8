// ring: one thread makes messages, another consumes them, so every block is allocated by one and freed by the other.
// All memory is shared.  Every byte is written by the producer and read by the consumer.  Nanoseconds per message.
//
//   ring [--size 64] [--seconds 0.2] [--pin 0]      sizes: 16 64 256
//
// How it misleads: producer and consumer overlap, so the figure is that of the slower side (with most allocators the
// one that frees), plus the message lines and the queue, which no allocator can avoid.  The two CPUs may or may not
// share a cache, from run to run: compare only within one run of the runner.  A queue that published every entry would
// cost more than most allocators; this one publishes 128 at a time.  The time without an allocator (ring-no-allocator)
// is not a strict lower bound: it reuses memory after 8192 messages, and an allocator that reuses it sooner or in
// another order finds the lines in other caches, which costs more or less.
#include "common.h"
#include "spsc_queue.h"

namespace {

using namespace bench;

using Queue = SpscQueue<4096, 128>;

template <std::size_t Size>
void write_all(void* block, std::uint64_t value) {
  auto* words = static_cast<std::uint64_t*>(block);
  for (std::size_t i = 0; i < Size / 8; ++i) words[i] = value + i;
}

template <std::size_t Size>
std::uint64_t read_all(const void* block) {
  const auto* words = static_cast<const std::uint64_t*>(block);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < Size / 8; ++i) sum += words[i];
  return sum;
}

template <std::size_t Size>
double produce(Queue& queue, double seconds) {
  double deadline = now() + seconds;
  std::uint64_t count = 0;
  while (count % 4096 != 0 || now() < deadline) {
    void* message = shared::allocate(Size);
    write_all<Size>(message, count++);
    for (unsigned spins = 0; !queue.push(message);) relax(spins);
  }
  for (unsigned spins = 0; !queue.push(nullptr);) relax(spins);
  queue.flush();
  return static_cast<double>(count);
}

// Returns the sum of all words, which proves that each message arrived whole.
template <std::size_t Size>
std::uint64_t consume(Queue& queue) {
  std::uint64_t sum = 0;
  for (;;) {
    void* message = nullptr;
    for (unsigned spins = 0; !queue.pop(message);) relax(spins);
    if (message == nullptr) return sum;
    sum += read_all<Size>(message);
    escape(message);
    shared::release(message, Size);
  }
}

template <std::size_t Size>
std::uint64_t expected_sum(std::uint64_t count) {
  std::uint64_t words = Size / 8;
  return words * (count * (count - 1) / 2) + count * (words * (words - 1) / 2);
}

template <std::size_t Size>
void measure(double seconds, bool pin) {
  static Queue queue;
  double messages = 0;
  std::uint64_t sum = 0;
  Span span = run_workers(2, pin, [&](unsigned index) {
    if (index == 0) messages = produce<Size>(queue, seconds);
    else sum = consume<Size>(queue);
  });
  if (sum != expected_sum<Size>(static_cast<std::uint64_t>(messages))) {
    std::fprintf(stderr, "ring: a message arrived changed\n");
    std::abort();
  }
  report("ring", 2, messages, span);
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  std::string size = arguments.choice("size", {"64", "16", "256"});
  double seconds = arguments.seconds("seconds", 0.2);
  bool pin = arguments.flag("pin");
  arguments.finish();
  if (size == "16") measure<16>(seconds, pin);
  if (size == "64") measure<64>(seconds, pin);
  if (size == "256") measure<256>(seconds, pin);
}
