// What a tracer sees that stops this program at its probes.  It is this program itself: a probe becomes a breakpoint, which a
// handler of SIGTRAP answers.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <hmalloc/hmalloc_local.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <map>

#include "tracing.h"

using namespace hm;
using namespace hm::test;

#if HM_PROBES

namespace {

// As sys/sdt.h writes it: three addresses, then three strings.
struct Note {
  uintptr_t place, base, semaphore;
  std::string provider, name, arguments;
};

template <class T>
T read(const std::string& bytes, size_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::vector<Note> notes_of_this_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary | std::ios::ate);
  std::string elf(static_cast<size_t>(file.tellg()), '\0');
  file.seekg(0).read(elf.data(), static_cast<std::streamsize>(elf.size()));
  auto head = read<ElfW(Ehdr)>(elf, 0);
  auto section = [&](size_t i) { return read<ElfW(Shdr)>(elf, head.e_shoff + i * head.e_shentsize); };
  size_t names = section(head.e_shstrndx).sh_offset;
  uintptr_t loaded_base = 0;
  std::vector<Note> notes;
  for (size_t i = 0; i < head.e_shnum; ++i)
    if (elf.c_str() + names + section(i).sh_name == std::string(".stapsdt.base")) loaded_base = section(i).sh_addr;
  for (size_t i = 0; i < head.e_shnum; ++i) {
    if (elf.c_str() + names + section(i).sh_name != std::string(".note.stapsdt")) continue;
    for (size_t at = section(i).sh_offset, end = at + section(i).sh_size; at < end;) {
      auto note = read<ElfW(Nhdr)>(elf, at);
      size_t content = at + sizeof note + align_up(note.n_namesz, 4);
      const char* strings = elf.c_str() + content + 3 * sizeof(uintptr_t);
      const char* name = strings + strlen(strings) + 1;
      notes.push_back({read<uintptr_t>(elf, content), read<uintptr_t>(elf, content + sizeof(uintptr_t)),
                       read<uintptr_t>(elf, content + 2 * sizeof(uintptr_t)), strings, name, name + strlen(name) + 1});
      EXPECT_EQ(notes.back().base, loaded_base) << "somebody has moved the program without its notes";
      at = content + align_up(note.n_descsz, 4);
    }
  }
  Dl_info info;
  EXPECT_NE(dladdr(reinterpret_cast<void*>(&hm_malloc), &info), 0);
  uintptr_t moved_by = head.e_type == ET_DYN ? address_of(info.dli_fbase) : 0;
  for (Note& note : notes) note.place += moved_by, note.semaphore += moved_by;
  return notes;
}

Note note_of(const std::string& name) {
  for (const Note& note : notes_of_this_program())
    if (note.provider == "otel_memory" && note.name == name) return note;
  ADD_FAILURE() << "there is no probe " << name;
  return {};
}

}  // namespace

TEST_F(Tracing, NotesNameTheProbesAndTheirSemaphores) {
  Note alloc = note_of("alloc"), free = note_of("free");
  EXPECT_EQ(alloc.semaphore, address_of(&otel_memory_alloc_semaphore));
  EXPECT_EQ(free.semaphore, address_of(&otel_memory_free_semaphore));
  EXPECT_EQ(std::count(alloc.arguments.begin(), alloc.arguments.end(), ' '), 2) << alloc.arguments;
  EXPECT_EQ(std::count(free.arguments.begin(), free.arguments.end(), ' '), 0) << free.arguments;
  for (const char* each = alloc.arguments.c_str(); each != nullptr; each = strchr(each + 1, ' '))
    EXPECT_EQ(std::string(each + (*each == ' '), 2), "8@") << "eight bytes without a sign, none of them a fraction";
  EXPECT_EQ(notes_of_this_program().size(), 2u) << "each in one place";
}

#if defined(__x86_64__)

namespace {

struct Event {
  bool alloc;
  uintptr_t block;
  uint64_t size, weight;
};
constexpr size_t kMostEvents = 100'000;
Event events[kMostEvents];
std::atomic<size_t> event_count{0};

// An argument as a note tells it: a register, or what lies at a distance from one.
struct Argument {
  long distance = 0;
  int reg = -1;
  bool in_memory = false;

  explicit Argument(const std::string& text) {
    static const std::map<std::string, int> registers = {
        {"rax", REG_RAX}, {"rbx", REG_RBX}, {"rcx", REG_RCX}, {"rdx", REG_RDX}, {"rsi", REG_RSI}, {"rdi", REG_RDI},
        {"rbp", REG_RBP}, {"rsp", REG_RSP}, {"r8", REG_R8},   {"r9", REG_R9},   {"r10", REG_R10}, {"r11", REG_R11},
        {"r12", REG_R12}, {"r13", REG_R13}, {"r14", REG_R14}, {"r15", REG_R15}};
    size_t name = text.find('%') + 1;
    in_memory = text[text.find('@') + 1] != '%';
    if (in_memory) distance = strtol(text.c_str() + text.find('@') + 1, nullptr, 0);
    reg = registers.at(text.substr(name, text.find_first_of(")", name) - name));
  }
  Argument() = default;
  uint64_t in(const ucontext_t& stopped) const {
    auto value = static_cast<uint64_t>(stopped.uc_mcontext.gregs[reg]);
    return in_memory ? *reinterpret_cast<const uint64_t*>(value + static_cast<uint64_t>(distance)) : value;
  }
};

struct Breakpoint {
  uintptr_t place = 0;
  Argument arguments[3];
  size_t count = 0;

  void set(const Note& note) {
    place = note.place;
    for (size_t at = 0; at != std::string::npos; at = note.arguments.find(' ', at + 1))
      arguments[count++] = Argument(note.arguments.substr(at, note.arguments.find(' ', at + 1) - at));
    // As a debugger writes it, whatever the page allows.
    int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    uint8_t nop = 0, stop = 0xcc;
    ASSERT_EQ(pread(memory, &nop, 1, static_cast<off_t>(place)), 1);
    ASSERT_EQ(nop, 0x90);
    ASSERT_EQ(pwrite(memory, &stop, 1, static_cast<off_t>(place)), 1);
    close(memory);
  }
};
Breakpoint at_alloc, at_free;

// It goes on behind the nop.
void on_trap(int, siginfo_t*, void* context) {
  const auto& stopped = *static_cast<const ucontext_t*>(context);
  uintptr_t place = static_cast<uintptr_t>(stopped.uc_mcontext.gregs[REG_RIP]) - 1;
  const Breakpoint& at = place == at_alloc.place ? at_alloc : at_free;
  Event event{&at == &at_alloc, at.arguments[0].in(stopped), 0, 0};
  if (event.alloc) event.size = at.arguments[1].in(stopped), event.weight = at.arguments[2].in(stopped);
  size_t index = event_count.fetch_add(1, std::memory_order_relaxed);
  if (index < kMostEvents) events[index] = event;
}

uint64_t weight_of(uint64_t size, size_t rate) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(size) / -std::expm1(-double(size) / double(rate))));
}

struct Traced : Tracing {
  void SetUp() override {
    at_alloc.set(note_of("alloc"));
    at_free.set(note_of("free"));
    struct sigaction action{};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGTRAP, &action, nullptr);
  }
  static std::vector<Event> seen_in(const std::function<void()>& body) {
    count_semaphores(1);
    work();
    size_t first = event_count;
    body();
    size_t last = event_count;
    count_semaphores(-1);
    work();
    EXPECT_LT(event_count, kMostEvents);
    return {events + first, events + std::min(last, kMostEvents)};
  }
  // Each alloc has its free, which comes later, and each free its alloc.
  static void expect_pairs(const std::vector<Event>& all) {
    std::map<uintptr_t, bool> held;
    for (const Event& each : all)
      EXPECT_EQ(std::exchange(held[each.block], each.alloc), !each.alloc)
          << "an alloc of what is held, or a free of what is not";
    for (const auto& [block, still] : held) EXPECT_FALSE(still) << std::hex << block;
  }
};

void* aligned(size_t size) { return hm_aligned_alloc(512, size); }
void* zeroed(size_t size) { return hm_calloc(1, size); }
void* local(size_t size) { return hm_local_alloc(size); }
void free_sized_by_another(void* block, size_t size) {
  on_thread([=] { hm_free_sized(block, size); });
}

}  // namespace

TEST_F(Traced, WithoutATracerNothingIsSaid) {
  work();
  free_all(allocate_many(100, kMiB));
  EXPECT_EQ(event_count, 0u);
}

// Sizes are those of blocks; a weight is the bytes that the sample stands for.
TEST_F(Traced, WeightsAddUpToWhatWasAllocated) {
  for (size_t size : {size_t{16}, size_t{1000}, size_t{32768}, size_t{40000}, kMiB, 5 * kMiB}) {
    auto n = static_cast<size_t>(std::clamp<size_t>(256 * kMiB / size, 64, 2'000'000));
    size_t rounded = size <= kSmallMax ? size_of(class_of(size)) : size;
    auto all = seen_in([&] {
      for (size_t i = 0; i < n; ++i) hm_free(hm_malloc(size));
    });
    double sum = 0;
    for (const Event& each : all) {
      if (!each.alloc) continue;
      EXPECT_EQ(each.size, rounded);
      EXPECT_NEAR(double(each.weight), double(weight_of(rounded, kTracerRate)), 1);
      sum += double(each.weight);
    }
    double bytes = double(n) * double(rounded);
    EXPECT_NEAR(sum, bytes, slack(bytes, double(kTracerRate))) << size;
    EXPECT_GT(sum, 0) << size;
    expect_pairs(all);
  }
}

TEST_F(Traced, EveryWayToAllocateAndToFreeIsSeen) {
  struct Way {
    const char* name;
    void* (*allocate)(size_t);
    void (*free)(void*, size_t);
    size_t size, blocks;
  };
  auto free = [](void* block, size_t) { hm_free(block); };
  const Way ways[] = {
      {"malloc", hm_malloc, free, 1000, 50'000},
      {"free_sized", hm_malloc, hm_free_sized, 1000, 50'000},
      {"calloc", zeroed, hm_free_sized, 1000, 50'000},
      {"aligned", aligned, free, 1000, 50'000},
      {"shared", hm_shared_alloc, hm_shared_free_sized, 1000, 50'000},
      {"local", local, hm_local_free_sized, 1000, 50'000},
      {"realloc", hm_malloc, [](void* block, size_t) { EXPECT_EQ(hm_realloc(block, 0), nullptr); }, 1000, 50'000},
      {"another thread", hm_malloc, free_sized_by_another, 30'000, 1000},
      {"a large one", hm_malloc, free, 600'000, 100},
      {"a huge one", zeroed, hm_free_sized, 3 * kMiB, 30},
  };
  for (const Way& way : ways) {
    auto all = seen_in([&] {
      std::vector<void*> blocks(way.blocks);
      for (void*& block : blocks) block = way.allocate(way.size);
      for (void* block : blocks) way.free(block, way.size);
    });
    EXPECT_GT(all.size(), 10u) << way.name;
    expect_pairs(all);
    if (HasFailure()) ADD_FAILURE() << way.name;
  }
}

TEST_F(Traced, ALargeBlockOfAnotherSizeIsAnotherOne) {
  auto all = seen_in([] {
    std::vector<void*> blocks(20);
    for (void*& block : blocks) block = hm_realloc(hm_malloc(20 * kMiB), 30 * kMiB);
    free_all(blocks);
  });
  EXPECT_EQ(all.size(), 80u);
  expect_pairs(all);
  for (const Event& each : all)
    if (each.alloc) { EXPECT_EQ(each.weight, each.size) << "so large a block is always sampled"; }
}

// Both see the same ones, at the profile's rate.
TEST_F(Traced, AProfileSharesItsSamples) {
  auto all = seen_in([] {
    hm_profile_start(64 * kKiB);
    std::vector<void*> blocks = allocate_many(20'000, 1000);
    EXPECT_TRUE(samples.any_profiled());
    free_all(blocks);
    hm_profile_stop();
  });
  size_t n = 0;
  for (const Event& each : all)
    if (each.alloc && each.size == 1024) {
      EXPECT_EQ(each.weight, weight_of(1024, 64 * kKiB));
      ++n;
    }
  EXPECT_GT(n, 100u);
  expect_pairs(all);
}

TEST_F(Traced, WhatWasNotSampledEndsUnseen) {
  std::vector<void*> blocks = allocate_many(1000, 1000), large = allocate_many(20, kMiB);
  auto all = seen_in([&] {
    std::vector<void*> held = allocate_many(20, 2 * kMiB);  // so that frees of others are looked up
    free_all(blocks);
    free_all(large);
    free_all(held);
  });
  expect_pairs(all);
}

#endif

#endif
