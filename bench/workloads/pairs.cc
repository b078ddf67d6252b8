// pairs: a malloc and its free on one thread in five orders of freeing and eight sizes.  All memory is local.
// Nanoseconds per pair.
//
//   once     free at once
//   fifo     1000 mallocs, then 1000 frees in the same order
//   lifo     the same in reverse order
//   random   the same in random order, another one in every batch
//   replace  replace a random one of 1000 live blocks
//
//   pairs [--pattern once] [--size 64] [--seconds 0.12]      sizes: 16 32 48 64 96 128 256 512
//
// Only the first byte of a block is written, the size is a constant as in `new T`, and everything fits the caches.
// There is never a second thread, which some allocators notice.
// How it misleads: a program that only calls malloc and free keeps the allocator's code, data and branches hot; it says
// nothing about the misses that an allocator causes in real code, nor about the locality of what it hands out.  `once`
// rewards a one-entry cache.  The loops themselves cost up to a nanosecond (reading the order).
#include <algorithm>
#include <array>
#include <numeric>

#include "common.h"

namespace {

using namespace bench;

constexpr std::size_t kLive = 1000;
constexpr std::size_t kOrders = 64;

using Order = std::array<std::uint16_t, kLive>;

struct State {
  std::array<void*, kLive> blocks{};
  std::array<Order, kOrders> shuffled{};   // permutations
  std::array<Order, kOrders> arbitrary{};  // with repetitions
  std::size_t turn = 0;
  const Order& next(const std::array<Order, kOrders>& orders) { return orders[turn++ % kOrders]; }
};

State state;

void draw_orders() {
  Random random(1);
  for (Order& order : state.shuffled) {
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    for (std::uint32_t i = kLive - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  }
  for (Order& order : state.arbitrary) {
    for (auto& index : order) index = static_cast<std::uint16_t>(random.below(kLive));
  }
}

template <std::size_t Size>
void fill() {
  for (void*& block : state.blocks) block = local::allocate_touched(Size);
}

// One batch of each pattern: kLive pairs.
template <std::size_t Size>
void once() {
  for (std::size_t i = 0; i < kLive; ++i) local::release(local::allocate_touched(Size), Size);
}
template <std::size_t Size>
void fifo() {
  fill<Size>();
  for (void* block : state.blocks) local::release(block, Size);
}
template <std::size_t Size>
void lifo() {
  fill<Size>();
  for (std::size_t i = kLive; i-- > 0;) local::release(state.blocks[i], Size);
}
template <std::size_t Size>
void shuffled() {
  fill<Size>();
  for (std::uint16_t index : state.next(state.shuffled)) local::release(state.blocks[index], Size);
}
template <std::size_t Size>
void replace() {
  for (std::uint16_t index : state.next(state.arbitrary)) {
    local::release(state.blocks[index], Size);
    state.blocks[index] = local::allocate_touched(Size);
  }
}

struct Pattern {
  const char* name;
  void (*batch)();
  bool keeps_live;
};

template <std::size_t Size>
double measure(const std::string& pattern, double seconds, Span& span) {
  static constexpr std::array<Pattern, 5> kPatterns{{{"once", once<Size>, false},
                                                     {"fifo", fifo<Size>, false},
                                                     {"lifo", lifo<Size>, false},
                                                     {"random", shuffled<Size>, false},
                                                     {"replace", replace<Size>, true}}};
  const Pattern& chosen =
      *std::find_if(kPatterns.begin(), kPatterns.end(), [&](const Pattern& each) { return pattern == each.name; });
  if (chosen.keeps_live) fill<Size>();
  for (int i = 0; i < 100; ++i) chosen.batch();
  double batches = 0;
  span = run_here([&] {
    for (double end = now() + seconds; now() < end; batches += 20) {
      for (int i = 0; i < 20; ++i) chosen.batch();
    }
  });
  if (chosen.keeps_live) {
    for (void* block : state.blocks) local::release(block, Size);
  }
  return batches * kLive;
}

template <std::size_t... Sizes>
double measure_one_of(const std::string& size, const std::string& pattern, double seconds, Span& span) {
  double ops = 0;
  ((size == std::to_string(Sizes) ? void(ops = measure<Sizes>(pattern, seconds, span)) : void()), ...);
  return ops;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  std::string pattern = arguments.choice("pattern", {"once", "fifo", "lifo", "random", "replace"});
  std::string size = arguments.choice("size", {"64", "16", "32", "48", "96", "128", "256", "512"});
  double seconds = arguments.seconds("seconds", 0.12);
  arguments.finish();

  draw_orders();
  Span span;
  double ops = measure_one_of<16, 32, 48, 64, 96, 128, 256, 512>(size, pattern, seconds, span);
  report("pairs", 1, ops, span);
}
