// What a program knows of its blocks, and the calls that it checks against that: no two overlap, all are aligned, hold
// what was written to them, and errno is what the header says.
#pragma once
#include <cstdint>
#include <map>

#include "stream.h"

namespace fuzz {

enum class Kind : uint8_t { kNone, kGeneral, kAligned, kShared };

struct Block {
  char* at = nullptr;
  size_t size = 0, usable = 0;
  unsigned seed = 0;
  Kind kind = Kind::kNone;
  bool exact = false;  // may be freed with its size: it comes from an allocation and not from realloc
};

// Where live blocks lie.  For threads that take turns only.
class Places {
 public:
  void add(const Block& block);
  void remove(const Block& block);
  size_t bytes() const { return bytes_; }
  size_t blocks() const { return ends_.size(); }
  size_t huge() const { return huge_; }  // how many of them may be

 private:
  std::map<uintptr_t, uintptr_t> ends_;
  size_t bytes_ = 0, huge_ = 0;
};

// What a program may ask for.  `held`: what it holds already; a program that holds much gets small blocks.
size_t read_size(Stream& in, size_t held);

class Shadow {
 public:
  explicit Shadow(Places* places) : places_(places) {}

  Block allocate(Stream& in);
  Block allocate_as(unsigned how, size_t size, Stream& in);
  void resize(Block& block, Stream& in);
  void free(Block& block, unsigned how);
  void rewrite(Block& block) const;
  static void check(const Block& block);

  void impossible(Stream& in, Block& block);  // requests that nobody can serve
  void expect_failures(bool may) { may_fail_ = may; }
  void forget_places() { places_ = nullptr; }
  size_t held() const { return held_; }
  void hand_over(const Block& block) { held_ -= block.usable; }
  void take_over(const Block& block) { held_ += block.usable; }

 private:
  Block made(void* at, size_t size, Kind kind, bool exact, size_t alignment);
  void forget(const Block& block);

  Places* places_;  // null: threads run at once
  size_t held_ = 0;
  bool may_fail_ = false;
};

}  // namespace fuzz
