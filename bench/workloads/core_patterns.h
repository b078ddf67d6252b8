// What each core does in a turn, for bench/workloads/cores.cc.  A turn is a fixed number of mallocs and of frees on the
// average; between the calls each block is written once, and read once by whoever frees it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "../../lab/native/cores/marks.h"
#include "memory.h"
#include "workers.h"

namespace bench {

struct Block {
  void* address = nullptr;
  std::size_t size = 0;
};

inline Block make(std::size_t size) {
  cores::enter();
  void* address = std::malloc(size);
  cores::leave();
  escape(address);
  if (address == nullptr) std::abort();
  *static_cast<volatile std::uint64_t*>(address) = size;
  return {address, size};
}

inline void discard(const Block& block) {
  static_cast<void>(*static_cast<volatile std::uint64_t*>(block.address));
  void* address = block.address;
  escape(address);
  cores::enter();
  std::free(address);
  cores::leave();
}

// What lies before a core, put there by others.
class Inbox {
 public:
  bool put(const Block& block) {
    if (count_ == blocks_.size()) return false;
    blocks_[count_++] = block;
    return true;
  }
  template <class Use>
  void take_all(Use use) {
    while (count_ > 0) use(blocks_[--count_]);
  }
  void discard_all() { take_all(discard); }

 private:
  std::array<Block, 256> blocks_;
  std::size_t count_ = 0;
};

// One for each core, on lines of its own.
template <class State>
class PerCore {
 public:
  explicit PerCore(unsigned cores) : slots_(cores) {}
  State& operator[](unsigned core) { return slots_[core].state; }

 private:
  struct alignas(128) Slot {
    State state;
  };
  std::vector<Slot> slots_;
};

struct Setting {
  unsigned cores;
  unsigned grain;       // mallocs in a turn
  unsigned operations;  // of a core, in the part that counts
};

// Turns come one after the other, core by core, and round by round.
class Pattern {
 public:
  explicit Pattern(const Setting& setting) : of_(setting) {}
  virtual ~Pattern() = default;
  virtual void turn(unsigned core) = 0;
  virtual unsigned rounds() const { return of_.operations / of_.grain; }
  virtual unsigned warm_up() const { return rounds(); }
  // How many rounds a thread lives; 0: as long as the program.
  virtual unsigned life() const { return 0; }
  virtual double operations() const { return static_cast<double>(rounds()) * of_.grain * of_.cores; }

 protected:
  const Setting of_;
};

// Blocks go to `to(core)`: one's own, the next core, or any.
class Messages : public Pattern {
 public:
  explicit Messages(const Setting& setting) : Pattern(setting), inboxes_(setting.cores), made_(setting.cores) {
    for (unsigned i = 0; i < of_.cores; ++i) made_[i].resize(of_.grain);
  }
  void turn(unsigned core) override {
    for (Block& block : made_[core]) block = make(64);
    for (const Block& block : made_[core]) {
      if (!inboxes_[to(core)].put(block)) discard(block);
    }
    inboxes_[core].discard_all();
  }

 protected:
  virtual unsigned to(unsigned core) = 0;

 private:
  PerCore<Inbox> inboxes_;
  PerCore<std::vector<Block>> made_;
};

class Own final : public Messages {
 public:
  using Messages::Messages;
  unsigned to(unsigned core) override { return core; }
};

class Ring final : public Messages {
 public:
  using Messages::Messages;
  unsigned to(unsigned core) override { return (core + 1) % of_.cores; }
};

class AtRandom final : public Messages {
 public:
  using Messages::Messages;
  unsigned to(unsigned) override { return random_.below(of_.cores); }

 private:
  Random random_{1};
};

// A conservative simulation: in a turn a core executes the events that were sent to it in the window before.  Each sends one
// and is freed.
class Simulation final : public Pattern {
 public:
  enum class To { any, next };
  // remote: of 10,000 events, how many go to the core before or after, or to any, which may be their own.
  Simulation(const Setting& setting, std::size_t event, unsigned remote, To to)
      : Pattern(setting),
        event_(event),
        remote_(remote),
        to_(to),
        due_(setting.cores),
        sent_(setting.cores),
        window_(setting.cores) {}
  void turn(unsigned core) override {
    if (window_[core]++ == 0) {
      for (unsigned i = 0; i < of_.grain; ++i) due_[core].put(make(event_));
    }
    due_[core].take_all([&](const Block& event) {
      Block next = make(event_);
      discard(event);
      if (!sent_[destination(core)].put(next)) std::abort();
    });
    if (core + 1 == of_.cores) std::swap(due_, sent_);
  }

 private:
  unsigned destination(unsigned core) {
    if (random_.below(10'000) >= remote_) return core;
    if (to_ == To::any) return random_.below(of_.cores);
    return (core + (random_.next() % 2 == 0 ? 1 : of_.cores - 1)) % of_.cores;
  }

  const std::size_t event_;
  const unsigned remote_;
  const To to_;
  Random random_{1};
  PerCore<Inbox> due_, sent_;
  PerCore<unsigned> window_;
};

// Each core replaces random ones of its blocks; what it replaces goes, by a coin, to the next core or back at once.
class Exchange final : public Pattern {
 public:
  explicit Exchange(const Setting& setting) : Pattern(setting), live_(setting.cores), inboxes_(setting.cores) {}
  void turn(unsigned core) override {
    auto& live = live_[core];
    if (live.front().address == nullptr) {
      for (Block& block : live) block = make(64);
    }
    for (unsigned i = 0; i < of_.grain; ++i) {
      Block& block = live[random_.below(kLive)];
      Block old = block;
      block = make(64);
      if (random_.next() % 2 == 0 || !inboxes_[(core + 1) % of_.cores].put(old)) discard(old);
    }
    inboxes_[core].discard_all();
  }

 private:
  static constexpr unsigned kLive = 256;
  Random random_{1};
  PerCore<std::array<Block, kLive>> live_;
  PerCore<Inbox> inboxes_;
};

// The first core makes all blocks, the others free them.
class ProducerConsumer final : public Pattern {
 public:
  explicit ProducerConsumer(const Setting& setting) : Pattern(setting), inboxes_(setting.cores) {}
  void turn(unsigned core) override {
    if (core == 0) {
      for (unsigned to = of_.cores > 1 ? 1 : 0; to < of_.cores; ++to) {
        for (unsigned i = 0; i < of_.grain; ++i) inboxes_[to].put(make(8));
      }
    }
    inboxes_[core].discard_all();
  }
  double operations() const override { return Pattern::operations() / of_.cores * std::max(1U, of_.cores - 1); }

 private:
  PerCore<Inbox> inboxes_;
};

// A server whose threads come and go: each replaces random ones of its blocks, and leaves them to the thread after it.
class Larson final : public Pattern {
 public:
  explicit Larson(const Setting& setting) : Pattern(setting), live_(setting.cores) {}
  void turn(unsigned core) override {
    auto& live = live_[core];
    if (live.front().address == nullptr) {
      for (Block& block : live) block = make(size());
    }
    for (unsigned i = 0; i < of_.grain; ++i) {
      Block& block = live[random_.below(kLive)];
      discard(block);
      block = make(size());
    }
  }
  unsigned life() const override { return std::max(1U, kSteps / of_.grain); }

 private:
  static constexpr unsigned kLive = 500;
  static constexpr unsigned kSteps = 512;
  std::size_t size() { return 8 + random_.below(505); }
  Random random_{1};
  PerCore<std::array<Block, kLive>> live_;
};

// Blocks of one size, allocated in a row and then freed in the same order: `batch` of them, again and again.
class Batches : public Pattern {
 public:
  Batches(const Setting& setting, std::size_t size, unsigned batch)
      : Pattern(setting), size_(size), at_(setting.cores), blocks_(setting.cores) {
    for (unsigned i = 0; i < of_.cores; ++i) blocks_[i].resize(batch);
  }
  void turn(unsigned core) override {
    std::vector<Block>& blocks = blocks_[core];
    unsigned& at = at_[core];
    for (unsigned i = 0; i < 2 * of_.grain; ++i) {
      if (at < blocks.size()) blocks[at] = make(size_);
      else discard(blocks[at - blocks.size()]);
      at = (at + 1) % static_cast<unsigned>(2 * blocks.size());
    }
  }

 private:
  const std::size_t size_;
  PerCore<unsigned> at_;
  PerCore<std::vector<Block>> blocks_;
};

class Threadtest final : public Batches {
 public:
  explicit Threadtest(const Setting& setting) : Batches(setting, 64, 512) {}
};

// New memory: all of a core's blocks are allocated before the first is freed, once.
class LinuxScalability final : public Batches {
 public:
  explicit LinuxScalability(const Setting& setting)
      : Batches(setting, 512, setting.operations / setting.grain * setting.grain) {}
  unsigned warm_up() const override { return 0; }
};

}  // namespace bench
