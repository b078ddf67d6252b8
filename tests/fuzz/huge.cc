// Fuzzer of huge blocks, below the entry points: blocks of whole megabytes, resized in place or moved, kept, purged.
// Knows of huge.h only what it promises.
#include <algorithm>

#include "base/os_pages.h"
#include "fuzz.h"
#include "large/huge.h"
#include "pages/options.h"

namespace {

constexpr size_t kMaxBlocks = 24, kMaxBytes = size_t{2} << 30, kMaxSize = size_t{1} << 30;

struct Held {
  char* at = nullptr;
  size_t size = 0;
  unsigned seed = 0;
};

class Model {
 public:
  void step(fuzz::Stream& in) {
    unsigned code = in.byte();
    Held& held = blocks_[in.below(kMaxBlocks)];
    switch (code % 16) {
      case 12: hm::purge_huge_blocks(code / 16 % 2 == 0); return check_all();
      case 13: return compare();
      case 14: hm::options.decay_ms = code / 16 % 2 == 0 ? 500 : 0; return;
      case 15: return fail_calls(in);
      default: break;
    }
    if (held.at == nullptr) return allocate(held, in);
    check(held);
    if (code % 16 < 6) resize(held, in);
    else free(held);
  }

  void finish() {
    stop_failing();
    for (Held& held : blocks_)
      if (held.at != nullptr) check(held), free(held);
    hm::purge_huge_blocks(true);
    compare();
    fuzz::expect(hm::huge_gauges().kept == 0, "a purge of all has left extents");
  }

 private:
  size_t read_size(fuzz::Stream& in) const {
    size_t how = in.byte(), size = 0;
    switch (how % 4) {
      case 0: size = in.below(16) * hm::kMiB + in.number(1) * 4096; break;
      case 1: size = in.below(40) * hm::kChunk + in.below(3) * 4096; break;
      case 2: size = in.number(4) % (64 * hm::kMiB); break;
      case 3: size = in.number(4) % kMaxSize; break;
    }
    size = std::max(size, hm::kMiB + 1);
    return bytes_ + size > kMaxBytes ? hm::kMiB + 1 + size % hm::kMiB : size;
  }

  static hm::Extent& extent(const Held& held) {
    hm::Extent* found = hm::huge_extent(held.at);
    fuzz::expect(found != nullptr, "a live block has no extent", held.at);
    return *found;
  }

  void check(const Held& held) const {
    const hm::Extent& of = extent(held);
    fuzz::expect(hm::huge_is_live(of), "a live block is called free", held.at);
    fuzz::expect(hm::huge_size(of) == held.size, "a block has forgotten its size", held.at);
    fuzz::expect(hm::huge_capacity(of) >= held.size, "a block has less room than its size", held.at);
    fuzz::expect(fuzz::matches(held.at, held.size, held.size, held.seed), "a block holds something else", held.at);
  }
  void check_all() const {
    for (const Held& held : blocks_)
      if (held.at != nullptr) check(held);
    fuzz::expect(hm::huge_is_valid(), "huge blocks are not valid");
  }
  void expect_alone(const Held& fresh) const {
    size_t length = hm::huge_capacity(extent(fresh));
    for (const Held& other : blocks_) {
      if (other.at == nullptr || &other == &fresh) continue;
      fuzz::expect(fresh.at + length <= other.at || other.at + hm::huge_capacity(extent(other)) <= fresh.at,
                   "two blocks overlap", fresh.at);
    }
  }

  void allocate(Held& held, fuzz::Stream& in) {
    size_t size = read_size(in);
    size_t alignment = in.byte() % 4 == 0 ? size_t{1} << in.below(27) : 16;
    bool map = in.byte() % 8 != 0;
    hm::FreshBlock got = hm::allocate_huge(size, alignment, map);
    if (got.block == nullptr) return fuzz::expect(!map || failing_, "no memory");
    held = {static_cast<char*>(got.block), size, ++seeds_ * 0x01000193u};
    bytes_ += size;
    fuzz::expect(reinterpret_cast<uintptr_t>(held.at) % alignment == 0, "not aligned", held.at);
    if (got.dirty < size)
      fuzz::expect(fuzz::is_zero(held.at + got.dirty, size - got.dirty), "what should read as zero does not", held.at);
    expect_alone(held);
    fuzz::fill(held.at, size, held.seed);
  }

  void resize(Held& held, fuzz::Stream& in) {
    size_t size = read_size(in);
    void* at = hm::resize_huge(extent(held), size);
    if (at == nullptr) return check(held);
    Held old = held;
    held.at = static_cast<char*>(at);
    held.size = size;
    bytes_ += size - old.size;
    fuzz::expect(hm::huge_size(extent(held)) == size, "a resized block has another size", at);
    expect_alone(held);
    fuzz::expect(fuzz::matches(held.at, old.size, std::min(old.size, size), old.seed), "resizing lost content", at);
    held.seed = ++seeds_ * 0x01000193u;
    fuzz::fill(held.at, size, held.seed);
  }

  void free(Held& held) {
    hm::free_huge(extent(held));
    bytes_ -= held.size;
    held = {};
  }

  void compare() const {
    auto live = static_cast<size_t>(std::count_if(blocks_, blocks_ + kMaxBlocks, [](auto& h) { return h.at != nullptr; }));
    hm::HugeGauges g = hm::huge_gauges();
    fuzz::expect(g.blocks == live, "the number of huge blocks is not the program's");
    fuzz::expect(g.active >= bytes_ && g.mapped >= g.active && g.max_active >= g.active, "gauges are out of order");
    check_all();
  }

  void fail_calls(fuzz::Stream& in) {
    [[maybe_unused]] size_t after = in.below(16), count = in.below(16);
#if defined(HM_FAULTS)
    failing_ = count > 0;
    hm::os::fail_after(after, count);
#endif
  }
  void stop_failing() {
#if defined(HM_FAULTS)
    hm::os::fail_after(0, 0);
#endif
  }

  Held blocks_[kMaxBlocks];
  size_t bytes_ = 0;
  unsigned seeds_ = 0;
  bool failing_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::remember(data, size);
  hm::options.decay_ms = 500;
  Model model;
  for (fuzz::Stream in(data, size); !in.at_end();) model.step(in);
  model.finish();
  return 0;
}
