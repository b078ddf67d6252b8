// pairs: nanoseconds for a malloc and its free on one thread, five orders of freeing, eight sizes.
//
//   once     free at once
//   fifo     1000 mallocs, then 1000 frees in the same order
//   lifo     the same in reverse order
//   random   the same in random order, another one in every batch
//   replace  replace a random one of 1000 live blocks
//
//   pairs [--pattern once,fifo,...] [--size 16,64,...] [--seconds 0.12]
//
// Only the first byte of a block is written, the size is a constant as in `new T`, and everything fits the caches.
// How it misleads: a program that does nothing but malloc and free keeps the allocator's code, data and branches hot;
// it says nothing about the misses that an allocator causes in real code, nor about locality of what it hands out.
// `once` rewards a one-entry cache.  The loops themselves cost up to a nanosecond (reading the order).
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
  for (void*& block : state.blocks) block = allocate_touched(Size);
}

// One batch of each pattern: kLive pairs.
template <std::size_t Size>
void once() {
  for (std::size_t i = 0; i < kLive; ++i) release(allocate_touched(Size), Size);
}
template <std::size_t Size>
void fifo() {
  fill<Size>();
  for (void* block : state.blocks) release(block, Size);
}
template <std::size_t Size>
void lifo() {
  fill<Size>();
  for (std::size_t i = kLive; i-- > 0;) release(state.blocks[i], Size);
}
template <std::size_t Size>
void shuffled() {
  fill<Size>();
  for (std::uint16_t index : state.next(state.shuffled)) release(state.blocks[index], Size);
}
template <std::size_t Size>
void replace() {
  for (std::uint16_t index : state.next(state.arbitrary)) {
    release(state.blocks[index], Size);
    state.blocks[index] = allocate_touched(Size);
  }
}

struct Pattern {
  const char* name;
  void (*batch)();
  bool keeps_live;
};

template <std::size_t Size>
void measure(const Arguments& arguments) {
  if (!arguments.has("size", std::to_string(Size))) return;
  static constexpr std::array<Pattern, 5> kPatterns{{{"once", once<Size>, false},
                                                     {"fifo", fifo<Size>, false},
                                                     {"lifo", lifo<Size>, false},
                                                     {"random", shuffled<Size>, false},
                                                     {"replace", replace<Size>, true}}};
  for (const Pattern& pattern : kPatterns) {
    if (!arguments.has("pattern", pattern.name)) continue;
    if (pattern.keeps_live) fill<Size>();
    for (int i = 0; i < 100; ++i) pattern.batch();
    double seconds = arguments.number("seconds", 0.12);
    double batches = 0;
    Stamp stamp;
    stamp.begin();
    while (now() - stamp.start < seconds) {
      for (int i = 0; i < 20; ++i) pattern.batch();
      batches += 20;
    }
    stamp.finish();
    double elapsed = stamp.end - stamp.start;
    if (pattern.keeps_live) {
      for (void* block : state.blocks) release(block, Size);
    }
    double ops = batches * kLive;
    report({"pairs", pattern.name + ("/" + std::to_string(Size)), 1, ops, elapsed / ops * 1e9,
            field("cpu_share", stamp.cpu / elapsed)});
  }
}

template <std::size_t... Sizes>
void measure_all(const Arguments& arguments) {
  (measure<Sizes>(arguments), ...);
}

}  // namespace

int main(int count, char** values) {
  draw_orders();
  measure_all<16, 32, 48, 64, 96, 128, 256, 512>(Arguments(count, values));
}
