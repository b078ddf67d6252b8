// A fork may come at any instruction of another thread's operation on huge blocks.  Here it does come at every one: each
// operation runs one instruction at a time, after each of them no two descriptors may own the same byte, nor one that the
// system may give to somebody else (E5); and wherever a descriptor has changed, a child is forked, repairs, and goes on.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/os_pages.h"
#include "large/extent_table.h"
#include "large/runs.h"
#include "pages/options.h"
#include "support.h"

using namespace hm;

namespace {

struct Held {
  char* block;
  size_t size;
};
std::array<Held, 8> held{};  // what an operation that is being stepped through has nothing to do with
uint64_t steps, changes, last_signature;
const char* complaint;

struct Owned {
  char *start, *end;
};

// What all descriptors own, or null and a complaint.
size_t all_owned(std::array<Owned, 64>& owned) {
  size_t n = 0;
  extent_table.for_each([&](Extent& extent) {
    if (extent.bytes() > 0) owned[n++ % owned.size()] = {extent.start(), extent.end()};
  });
  return n;
}

bool is_mapped(char* page) {
  unsigned char in_memory;
  return mincore(page, os::page_size(), &in_memory) == 0;
}

const char* wrong_owners() {
  std::array<Owned, 64> owned;
  size_t n = all_owned(owned);
  if (n > owned.size()) return "too many extents for this test";
  for (size_t i = 0; i < n; ++i) {
    if (!is_mapped(owned[i].start) || !is_mapped(owned[i].end - os::page_size())) return "owns what is not mapped";
    for (size_t j = 0; j < i; ++j)
      if (owned[i].start < owned[j].end && owned[j].start < owned[i].end) return "two own the same bytes";
  }
  return nullptr;
}

uint64_t signature() {
  uint64_t hash = 1;
  auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u; };
  extent_table.for_each([&](Extent& extent) {
    for (uint64_t value : {address_of(&extent), uint64_t(extent.state()), address_of(extent.start()), extent.bytes(),
                           extent.dirty, extent.slack, extent.size, address_of(extent.next), address_of(extent.previous)})
      mix(value);
  });
  return hash;
}

constexpr size_t kStride = 128 * kKiB;  // of the pages that are looked at

void mark(char* block, size_t size) {
  for (size_t at = 0; at < size; at += kStride) memcpy(block + at, &block, sizeof block);
}
bool is_marked(char* block, size_t size) {
  for (size_t at = 0; at < size; at += kStride)
    if (memcmp(block + at, &block, sizeof block) != 0) return false;
  return true;
}
bool is_zero_from(char* block, size_t at, size_t size) {
  for (at = align_up(at, kStride); at < size; at += kStride)
    if (!test::is_zero(block + at, sizeof block)) return false;
  return true;
}

// In the child: repairs, then uses all that is kept and more.  What is wrong, or 0.
int life_after_repair() {
  huge_lock().lock();  // perhaps held already by the operation
  huge_lock().unlock();
  huge_repair();
  if (!huge_is_valid()) return 1;
  if (wrong_owners() != nullptr) return 2;
  std::array<Held, 8> blocks{};
  for (size_t round = 0; round < 2; ++round) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      size_t size = (i % 3 + 1) * 2 * kMiB - i % 2 * 5000;
      FreshBlock got = allocate_huge(size, kGranule, true);
      if (got.block == nullptr) return 3;
      blocks[i] = {static_cast<char*>(got.block), size};
      if (!is_zero_from(blocks[i].block, got.dirty, size)) return 4;
      mark(blocks[i].block, size);
    }
    for (Held& each : blocks) {
      if (!is_marked(each.block, each.size)) return 5;
      if (!free_huge(*huge_extent(each.block))) return 6;
    }
    if (!huge_is_valid()) return 7;
    purge_huge_blocks(true);
  }
  for (Held& each : held) {
    if (each.block == nullptr) continue;
    if (!is_marked(each.block, each.size)) return 8;
    Extent* extent = huge_extent(each.block);
    if (extent == nullptr || !free_huge(*extent)) return 9;
  }
  return huge_is_valid() && wrong_owners() == nullptr ? 0 : 10;
}

const char* in_a_child() {
  long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);  // no handlers: they have locks of ours
  if (child == 0) _exit(life_after_repair());
  int status = 0;
  waitpid(static_cast<pid_t>(child), &status, 0);
  static char text[] = "a child ends with ??";
  if (status == 0) return nullptr;
  text[sizeof text - 3] = WIFEXITED(status) ? 'e' : 's';
  text[sizeof text - 2] = static_cast<char>('0' + (WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
  return text;
}

void after_each_instruction(int) {
  ++steps;
  if (complaint != nullptr) return;
  complaint = wrong_owners();
  uint64_t now = signature();
  if (complaint != nullptr || now == last_signature) return;
  last_signature = now;
  ++changes;
  complaint = in_a_child();
}

#if defined(__x86_64__)
constexpr bool kSteps = !kThreadSanitizer;
void set_trap_flag(bool on) {
  if (on)
    asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "cc", "memory");
  else
    asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "cc", "memory");
}
#else
constexpr bool kSteps = false;
void set_trap_flag(bool) {}
#endif

class HugeRepair : public testing::Test {
 protected:
  void SetUp() override {
    if (!kSteps) GTEST_SKIP() << "one instruction at a time: on x86-64 only, and not under ThreadSanitizer";
    struct sigaction action{};
    action.sa_handler = after_each_instruction;
    ASSERT_EQ(sigaction(SIGTRAP, &action, nullptr), 0);
    held.fill({nullptr, 0});
    options.decay_ms = 3'600'000;  // a busy machine's pause is none of the program's
  }

  // The operation must change descriptors.
  template <class Operation>
  static void step_through(const char* name, Operation operation) {
    steps = changes = 0;
    last_signature = signature();
    set_trap_flag(true);
    operation();
    set_trap_flag(false);
    EXPECT_EQ(complaint, nullptr) << name << ", step " << steps << ": " << complaint;
    EXPECT_GE(changes, 2u) << name;
    EXPECT_TRUE(huge_is_valid()) << name;
  }
  static char* get(size_t size, size_t alignment = kGranule) {
    return static_cast<char*>(allocate_huge(size, alignment, true).block);
  }
  static void put(char* block) { EXPECT_TRUE(free_huge(*huge_extent(block))); }
  static void hold(size_t i, size_t size) {
    held[i] = {get(size), size};
    mark(held[i].block, size);
  }
  static char* recurring(size_t size) {
    put(get(size));
    return get(size);
  }
  // A kept extent, written to all over.
  static char* keep(size_t size) {
    char* block = recurring(size);
    mark(block, size);
    put(block);
    return block;
  }
};

}  // namespace

TEST_F(HugeRepair, FromMapToUnmap) {
  hold(0, 3 * kMiB);
  char* block = nullptr;
  step_through("map", [&] { block = get(5 * kMiB); });
  mark(block, 5 * kMiB);
  step_through("unmap", [&] { put(block); });
  step_through("aligned", [&] { block = get(5 * kMiB, 8 * kMiB); });
  put(block);
}

TEST_F(HugeRepair, KeepTakeCutAndJoin) {
  hold(0, 3 * kMiB);
  char* block = recurring(16 * kMiB);
  mark(block, 16 * kMiB);
  step_through("keep", [&] { put(block); });
  std::array<char*, 4> parts;
  for (char*& part : parts) step_through("take", [&] { part = get(4 * kMiB - 5000); });
  for (char* part : parts) mark(part, 4 * kMiB - 5000);
  step_through("keep beside none", [&] { put(parts[1]); });
  step_through("keep beside none", [&] { put(parts[3]); });
  step_through("join on both sides", [&] { put(parts[2]); });
  step_through("join with the next", [&] { put(parts[0]); });
  EXPECT_EQ(get(16 * kMiB), block);
  put(block);
  step_through("purge", [&] { purge_huge_blocks(true); });
}

TEST_F(HugeRepair, SlackIsNotedAndPurged) {
  hold(0, 3 * kMiB);
  char *block = keep(8 * kMiB), *smaller = nullptr;
  hold(1, 7 * kMiB + 5000);  // with slack that is not the operation's
  keep(8 * kMiB);
  step_through("slack", [&] { smaller = get(7 * kMiB + 5000); });
  ASSERT_EQ(held[1].block, block);
  EXPECT_EQ(huge_gauges().kept, 2 * (kMiB - align_up(5000, os::page_size())));
  step_through("purge of slack", [&] { purge_huge_blocks(true); });
  EXPECT_EQ(huge_gauges().kept, 0u);
  put(smaller);
}

TEST_F(HugeRepair, GrowShrinkStretchAndMove) {
  hold(0, 3 * kMiB);
  keep(16 * kMiB);
  char *block = get(3 * kMiB), *grown = nullptr;
  step_through("grow into a kept one", [&] { grown = static_cast<char*>(resize_huge(*huge_extent(block), 9 * kMiB)); });
  ASSERT_EQ(grown, block);
  step_through("shrink", [&] { resize_huge(*huge_extent(block), 5 * kMiB); });
  put(block);
  step_through("stretch", [&] { block = get(40 * kMiB); });
  void* blocker = mmap(block + 40 * kMiB, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  step_through("move", [&] { grown = static_cast<char*>(resize_huge(*huge_extent(block), 50 * kMiB)); });
  EXPECT_NE(grown, block);
  put(grown);
  if (blocker != MAP_FAILED) munmap(blocker, 4096);
}
