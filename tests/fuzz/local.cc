// Fuzzer of local memory: the inline fast paths, coalescence, holes, and frees by another thread, whose heap is inherited
// when it ends.  The model knows every live block.
#include <hmalloc/hmalloc_local.h>

#include <algorithm>
#include <map>
#include <vector>

#include "crew.h"
#include "fuzz.h"
#include "threads/registry.h"

namespace fuzz {

void Hand::end(bool) {
  if (!thread_.joinable()) return;
  static const std::function<void()> nothing;
  {
    std::unique_lock guard(lock_);
    job_ = &nothing;
    changed_.notify_all();
  }
  thread_.join();
}

namespace {

constexpr size_t kMaxBlocks = 20'000;

struct Block {
  char* at;
  size_t size, usable;
  unsigned seed;
};

// The blocks that two threads share; each call is made by the one whose turn it is.
class Model {
 public:
  void step(Stream& in) {
    unsigned code = in.byte();
    switch (code % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: return add(in.number(2) % (HM_LOCAL_MAX + 200));
      case 5:
      case 6: {
        size_t size = in.number(2) % HM_LOCAL_MAX, step = in.below(3) * 16;
        for (size_t n = in.below(2000); n > 0 && blocks_.size() < kMaxBlocks; --n) add((size + n * step) % HM_LOCAL_MAX);
        return;
      }
      case 7:
      case 8: return remove_many(in);
      case 9:
      case 10:
      case 11: return blocks_.empty() ? void() : remove(in.below(blocks_.size()), in.byte());
      case 12: return blocks_.empty() ? void() : resize(blocks_[in.below(blocks_.size())], in);
      case 13: return void(hm_collect());
      case 14: return examine();
      case 15: return blocks_.empty() ? void() : check(blocks_[in.below(blocks_.size())]);
    }
  }
  void finish() {
    while (!blocks_.empty()) remove(blocks_.size() - 1, 0);
  }

 private:
  Block made(void* at, size_t size) {
    expect(at != nullptr, "no memory");
    Block block{static_cast<char*>(at), size, hm_local_usable_size(at), ++seeds_ * 0x01000193u};
    expect(reinterpret_cast<uintptr_t>(at) % 16 == 0, "not aligned", at);
    expect(block.usable >= size, "less usable than asked for", at);
    auto next = places_.lower_bound(block.at);
    expect(next == places_.end() || block.at + block.usable <= next->first, "a block reaches into the next one", at);
    expect(next == places_.begin() || std::prev(next)->second <= block.at, "a block lies in another one", at);
    places_[block.at] = block.at + block.usable;
    return block;
  }
  static void check(const Block& block) {
    expect(hm_local_usable_size(block.at) == block.usable, "a block has another size", block.at);
    expect(matches(block.at, block.usable, block.usable, block.seed), "a block holds something else", block.at);
  }
  void add(size_t size) {
    if (blocks_.size() >= kMaxBlocks) return;
    blocks_.push_back(made(hm_local_alloc(size), size));
    const Block& block = blocks_.back();
    expect(size > HM_LOCAL_MAX || block.usable <= size + size / 4 + 16, "more room than a quarter", block.at);
    fill(block.at, block.usable, block.seed);
  }
  void remove(size_t i, unsigned how) {
    std::swap(blocks_[i], blocks_.back());
    Block block = blocks_.back();
    check(block);
    blocks_.pop_back();
    places_.erase(block.at);
    how % 4 == 0 ? hm_free(block.at) : hm_local_free(block.at);
  }
  // Forwards, backwards, or with gaps: units become free, nearly free, or full of holes.
  void remove_many(Stream& in) {
    unsigned order = in.byte();
    size_t n = std::min(in.below(4000), blocks_.size()), gap = 1 + order / 4 % 4;
    if (order % 4 == 1) std::reverse(blocks_.begin(), blocks_.end());
    if (order % 4 == 2) std::sort(blocks_.begin(), blocks_.end(), [](auto& a, auto& b) { return a.at < b.at; });
    for (size_t i = blocks_.size(); n > 0 && i >= gap; i -= gap, --n) remove(i - 1, order);
  }
  void resize(Block& block, Stream& in) {
    check(block);
    Block old = block;
    size_t size = 1 + in.number(2) % (2 * HM_LOCAL_MAX);
    void* at = hm_local_realloc(old.at, size);
    places_.erase(old.at);
    block = made(at, size);
    expect(matches(block.at, old.usable, std::min(old.size, size), old.seed), "realloc lost what was in the block", at);
    fill(block.at, block.usable, block.seed);
  }
  void examine() const {
    expect(!hm::have_heap() || hm::my_thread_heap().local.is_valid(), "local memory is not valid");
    hm_stats stats;
    hm_stats_get(&stats);
    size_t held = 0;
    for (const Block& block : blocks_) held += block.usable;
    expect(stats.allocated == held, "the gauge of allocated bytes is not what the program holds");
  }

  std::vector<Block> blocks_;
  std::map<char*, char*> places_;
  unsigned seeds_ = 0;
};

}  // namespace
}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::remember(data, size);
  fuzz::Model model;
  fuzz::Hand other;
  bool is_other = false;
  for (fuzz::Stream in(data, size); !in.at_end();) {
    unsigned turn = in.byte();  // how many steps, and then?
    auto steps = [&] {
      for (unsigned n = turn % 16; n > 0 && !in.at_end(); --n) model.step(in);
    };
    if (is_other) other.call(steps);
    else steps();
    if (turn >= 128) is_other = !is_other;
    if (turn % 128 >= 120) other.end(false), is_other = false;
  }
  if (is_other) other.call([&] { model.finish(); });
  else model.finish();
  other.end(false);
  fuzz::expect_nothing_held();
  return 0;
}
