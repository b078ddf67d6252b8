#include "fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// A forked child has threads that ended in its parent and were not joined: no leak of the child's.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }

namespace fuzz {
namespace {

constexpr size_t kWhole = 64 << 10, kEnd = 4096, kSamples = 16, kSample = 16;

// The kernel clears a huge page as a whole for the first byte that is written: more than half of a fuzzer's time.  The
// allocator asks for them all the same.
[[gnu::constructor]] void do_without_huge_pages() { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

History* open_history() {
  const char* name = getenv("HM_FUZZ_HISTORY");
  int file = name == nullptr ? -1 : open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ftruncate(file, sizeof(History)) != 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(History), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<History*>(memory);
}

uint64_t word_of(unsigned seed, size_t at) { return (seed + at / 8) * 0x9e3779b97f4a7c15u; }
char pattern(unsigned seed, size_t at) { return static_cast<char>(word_of(seed, at) >> (at % 8 * 8)); }

// Calls byte(at), or word(at) for eight of them, for all from `from` to `to` while they return true.  Most of a fuzzer's
// time is spent here.
template <class Byte, class Word>
bool by_words(size_t from, size_t to, Byte byte, Word word) {
  size_t at = from;
  for (; at < to && at % 8 != 0; ++at)
    if (!byte(at)) return false;
  for (; at + 8 <= to; at += 8)
    if (!word(at)) return false;
  for (; at < to; ++at)
    if (!byte(at)) return false;
  return true;
}

// Calls visit(from, to) for every piece of a block that is looked at.
template <class Visit>
bool pieces(size_t size, Visit visit) {
  if (size <= kWhole) return visit(size_t{0}, size);
  for (size_t i = 1; i <= kSamples; ++i) {
    size_t from = (size - kSample) / (kSamples + 1) * i;
    if (!visit(from, from + kSample)) return false;
  }
  return visit(size_t{0}, kEnd) && visit(size - kEnd, size);
}

}  // namespace

void fail(const char* what, const void* where) {
  char line[256];
  int length = snprintf(line, sizeof line, "fuzz: %s (%p)\n", what, where);
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {}
  abort();
}

void remember(const uint8_t* data, size_t size) {
  static History* const history = open_history();
  static uint64_t number = 0;
  if (history == nullptr) return;
  History::Entry& entry = history->entries[number % History::kInputs];
  entry.number = 0;
  entry.size = std::min(size, History::kLongest);
  memcpy(entry.data, data, entry.size);
  entry.number = ++number;
}

void fill(char* block, size_t size, unsigned seed) {
  auto byte = [=](size_t at) { return block[at] = pattern(seed, at), true; };
  auto word = [=](size_t at) {
    uint64_t value = word_of(seed, at);
    memcpy(block + at, &value, sizeof value);
    return true;
  };
  pieces(size, [=](size_t from, size_t to) { return by_words(from, to, byte, word); });
}

bool matches(const char* block, size_t size, size_t limit, unsigned seed) {
  auto byte = [=](size_t at) { return block[at] == pattern(seed, at); };
  // Not by memcmp: libFuzzer intercepts each call.
  auto word = [=](size_t at) {
    uint64_t value;
    memcpy(&value, block + at, sizeof value);
    return value == word_of(seed, at);
  };
  return pieces(size, [=](size_t from, size_t to) { return by_words(from, std::min(to, limit), byte, word); });
}

// Every page up to 4 MB: what was not cleared may begin anywhere.
bool is_zero(const char* block, size_t size) {
  constexpr size_t kEachPage = 4 << 20;
  for (size_t page = 0; page < std::min(size, kEachPage); page += kEnd)
    if (block[page] != 0 || block[page + std::min(size - page, kEnd) - 1] != 0) return false;
  return pieces(size, [=](size_t from, size_t to) {
    return std::all_of(block + from, block + to, [](char byte) { return byte == 0; });
  });
}

}  // namespace fuzz
