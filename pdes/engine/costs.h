// What an event costs, by its type and the class of its LP.  Few are timed; all threads weigh theirs by what all have found, so
// two threads with equal events have equal load, whatever else runs on their CPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pdes {

// Cells: of each class, one for each type.
struct Timed {
  std::uint64_t events = 0, ns = 0;
};

// Of one thread.
class EventTimer {
 public:
  EventTimer(std::size_t cells, std::uint64_t (*clock)());  // null: the system's
  void start() { before_ = clock_(); }
  // What has passed since the last lap, or the start, is that of an event of the cell.
  void lap(std::size_t cell);
  std::span<const Timed> timed() const noexcept { return timed_; }
  void forget_half();

 private:
  std::uint64_t (*clock_)();
  std::uint64_t before_ = 0;
  std::vector<Timed> timed_;
};

// The same on all threads, which have the same numbers.
class Weights {
 public:
  static constexpr std::uint32_t kUnit = 16;  // of the mean event

  Weights(std::size_t classes, std::size_t types);
  // From the cells of all threads, one thread's after the other's.  Whether a weight changes.
  bool find(std::span<const Timed> of_threads);
  std::size_t types() const noexcept { return types_; }
  std::uint32_t of(std::size_t cell) const noexcept { return weights_[cell]; }
  // Whether a type costs more on LPs of one class than on those of another; otherwise it weighs the same on all.
  bool by_class() const noexcept { return by_class_; }
  double mean_ns() const noexcept { return mean_ns_; }  // 0: nobody knows
  // The mean square of a weight beside the square of the mean: so much more do sums of them vary by chance.
  double spread() const noexcept { return spread_; }

 private:
  void find_classes();
  void find_types();

  const std::size_t types_;
  bool by_class_ = false;
  double mean_ns_ = 0, spread_ = 1;
  std::vector<std::uint32_t> weights_, before_;
  std::vector<Timed> sums_;
};

// What the LPs of one thread have executed, in units of weight.
struct Counted {
  const Weights* weights;
  std::uint64_t* by_lp;
  std::uint64_t sum = 0;
  void add(std::size_t lp, std::size_t cell) noexcept {
    by_lp[lp] += weights->of(cell);
    sum += weights->of(cell);
  }
};

}  // namespace pdes
