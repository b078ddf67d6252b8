#include "shadow.h"

#include <hmalloc/hmalloc_local.h>

#include <algorithm>
#include <cerrno>

#include "base/size_classes.h"
#include "fuzz.h"

namespace fuzz {
namespace {

constexpr int kUntouched = 4711;  // an errno that no call sets
constexpr size_t kLine = 64;
constexpr size_t kSeldomCopied = 16 << 20;  // half of a fuzzer's time otherwise

#if defined(HM_FUZZ_SMALL) || defined(HM_FAULTS)
constexpr size_t kMaxHeld = 256 << 20, kMaxSize = 64 << 20;  // with sanitizers and copies instead of moves
#else
constexpr size_t kMaxHeld = size_t{3} << 30, kMaxSize = size_t{1} << 30;
#endif

unsigned next_seed() {
  static thread_local unsigned seed = 0;
  return seed += 0x01000193;
}

// Above 1 MB, or aligned to more than a slice whatever its size.
bool may_be_huge(const Block& block) {
  return block.usable >= hm::kMiB || reinterpret_cast<uintptr_t>(block.at) % (2 * hm::kSlice) == 0;
}

void expect_errno(int value, const char* what) { expect(errno == value, what); }

}  // namespace

void Places::add(const Block& block) {
  uintptr_t from = reinterpret_cast<uintptr_t>(block.at), to = from + std::max(block.usable, size_t{1});
  auto next = ends_.lower_bound(from);
  expect(next == ends_.end() || next->first >= to, "a block reaches into the next one", block.at);
  expect(next == ends_.begin() || std::prev(next)->second <= from, "a block lies in another one", block.at);
  ends_.emplace_hint(next, from, to);
  bytes_ += block.usable;
  huge_ += may_be_huge(block);
}

void Places::remove(const Block& block) {
  ends_.erase(reinterpret_cast<uintptr_t>(block.at));
  bytes_ -= block.usable;
  huge_ -= may_be_huge(block);
}

size_t read_size(Stream& in, size_t held) {
  size_t how = in.byte(), size = 0;
  size_t near = (how >> 4) % 8;  // around a boundary
  auto around = [&](size_t boundary) { return boundary + near > 4 ? boundary + near - 4 : boundary; };
  switch (how % 12) {
    case 0: size = in.byte(); break;
    case 1:
    case 2: size = in.number(2) % 2048; break;
    case 3:
    case 4: size = around(hm::kClassSize[in.below(hm::kClasses)]); break;
    case 5: size = in.number(2) % 40'000; break;
    case 6: size = around(in.byte() * size_t{4096}); break;
    case 7: size = around(in.below(80) * hm::kSlice); break;
    case 8: size = around(in.below(24) * hm::kMiB / 2); break;
    case 9: size = around(in.below(33) * hm::kChunk); break;
    case 10: size = around(size_t{1} << in.below(31)); break;
    case 11: size = in.number(4) % kMaxSize; break;
  }
  size = std::min(size, kMaxSize);
  return held + size > kMaxHeld ? size % 5000 : size;
}

Block Shadow::made(void* at, size_t size, Kind kind, bool exact, size_t alignment) {
  if (at == nullptr) {
    expect(may_fail_, "no memory");
    expect_errno(ENOMEM, "no memory, and errno is not ENOMEM");
    return {};
  }
  expect_errno(kUntouched, "errno was changed by an allocation that succeeded");
  expect(reinterpret_cast<uintptr_t>(at) % alignment == 0, "not aligned", at);
  Block block{static_cast<char*>(at), size, hm_usable_size(at), next_seed(), kind, exact};
  expect(block.usable >= size, "less usable than asked for", at);
  // Of the hardened library's the last line has its edge, and is not the program's.
  if (kind == Kind::kShared && !hm::kHardened) expect(block.usable % kLine == 0, "a shared block ends within a line", at);
  if (hm::kHardened && size > 0) expect(block.usable == size, "more usable than asked for", at);
  if (places_ != nullptr) places_->add(block);
  held_ += block.usable;
  return block;
}

void Shadow::forget(const Block& block) {
  if (places_ != nullptr) places_->remove(block);
  held_ -= block.usable;
}

void Shadow::check(const Block& block) {
  expect(hm_usable_size(block.at) == block.usable, "the usable size has changed", block.at);
  expect(matches(block.at, block.usable, block.usable, block.seed), "a block holds something else", block.at);
}

void Shadow::rewrite(Block& block) const {
  block.seed = next_seed();
  fill(block.at, block.usable, block.seed);
}

Block Shadow::allocate(Stream& in) {
  unsigned how = in.byte();
  size_t size = read_size(in, held_);
  return allocate_as(how, size, in);
}

Block Shadow::allocate_as(unsigned how, size_t size, Stream& in) {
  Block block;
  errno = kUntouched;
  switch (how % 8) {
    case 0:
    case 1: block = made(hm_malloc(size), size, Kind::kGeneral, true, 16); break;
    case 2: {
      size_t count = size % 7 == 0 && size > 0 ? 7 : 1;
      block = made(hm_calloc(count, size / count), size / count * count, Kind::kGeneral, true, 16);
      if (block.at != nullptr) expect(is_zero(block.at, block.size), "calloc gave what is not zero", block.at);
      break;
    }
    case 3: {
      size_t alignment = size_t{1} << in.below(25);
      block = made(hm_aligned_alloc(alignment, size), size, Kind::kAligned, false, std::max(alignment, size_t{16}));
      break;
    }
    case 4: block = made(hm_shared_alloc(size), size, Kind::kShared, true, kLine); break;
    case 5:
    case 6: block = made(hm_local_alloc(size), size, Kind::kGeneral, true, 16); break;
    case 7: {
      bool shared = (how & 8) != 0;
      hm_cache* cache = shared ? hm_shared_cache_of(size) : hm_cache_of(size);
      if (cache == nullptr) return {};
      errno = kUntouched;
      block = made(hm_cache_alloc(cache), size, shared ? Kind::kShared : Kind::kGeneral, true, shared ? kLine : 16);
      break;
    }
  }
  if (block.at != nullptr) fill(block.at, block.usable, block.seed);
  return block;
}

void Shadow::resize(Block& block, Stream& in) {
  unsigned how = in.byte();
  size_t size = read_size(in, held_);
  if (block.size > kSeldomCopied && how >= 32) return check(block);
  if (how % 4 == 0) size = block.size + block.size / 2 <= kMaxSize ? block.size + block.size / 2 : size;  // a vector
  if (size == 0) return free(block, 5);
  check(block);
  bool local = how % 4 == 1;
  errno = kUntouched;
  void* at = local ? hm_local_realloc(block.at, size) : hm_realloc(block.at, size);
  if (at == nullptr) {  // the old one stays as it is
    expect(may_fail_, "no memory for a realloc");
    expect_errno(ENOMEM, "no memory for a realloc, and errno is not ENOMEM");
    return check(block);
  }
  Block old = block;
  forget(old);
  block = made(at, size, at != block.at || local ? Kind::kGeneral : Kind::kAligned, local, 16);
  expect(matches(block.at, old.usable, std::min(old.size, size), old.seed), "realloc lost what was in the block", at);
  rewrite(block);
}

void Shadow::free(Block& block, unsigned how) {
  check(block);
  forget(block);
  bool exact = block.exact, shared = block.kind == Kind::kShared;
  hm_cache* cache = !exact ? nullptr : shared ? hm_shared_cache_of(block.size) : hm_cache_of(block.size);
  errno = kUntouched;
  switch (how % 8) {
    case 0: hm_free(block.at); break;
    case 1: hm_shared_free(block.at); break;
    case 2:
    case 3:
      if (!exact) hm_free(block.at);
      else if (shared) hm_shared_free_sized(block.at, block.size);
      else how % 8 == 2 ? hm_free_sized(block.at, block.size) : hm_local_free_sized(block.at, block.size);
      break;
    case 4:
      if (cache != nullptr) hm_cache_free(cache, block.at);
      else hm_free(block.at);
      break;
    case 5: expect(hm_realloc(block.at, 0) == nullptr, "realloc to 0 gave a block"); break;
    case 6: expect(hm_local_realloc(block.at, 0) == nullptr, "local realloc to 0 gave a block"); break;
    case 7: hm_local_free(block.at); break;
  }
  expect_errno(kUntouched, "a free changed errno");
  block = {};
}

// Sizes through a variable that the compiler does not know.
void Shadow::impossible(Stream& in, Block& block) {
  volatile size_t most = SIZE_MAX - in.byte();
  volatile size_t half = size_t{1} << (48 + in.below(16));
  errno = kUntouched;
  void* got = nullptr;
  switch (in.below(8)) {
    case 0: got = hm_malloc(most); break;
    case 1: got = hm_calloc(half, half); break;
    case 2: got = hm_calloc(1, half); break;
    case 3: got = hm_aligned_alloc(half, half); break;
    case 4: got = hm_shared_alloc(most); break;
    case 5: got = hm_local_alloc(half); break;
    case 6:
      got = hm_aligned_alloc(3 + in.byte() * size_t{4}, 8);  // no power of two
      expect(got == nullptr, "an alignment that is none was served");
      return expect_errno(EINVAL, "a bad alignment, and errno is not EINVAL");
    case 7:
      if (block.at == nullptr) return;
      got = in.byte() % 2 == 0 ? hm_local_realloc(block.at, half) : hm_realloc(block.at, most);
      check(block);
      break;
  }
  expect(got == nullptr, "a request beyond all memory was served", got);
  expect_errno(ENOMEM, "a request beyond all memory, and errno is not ENOMEM");
}

}  // namespace fuzz
