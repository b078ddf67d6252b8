// The longest chain of events of a run of which each had to wait for the one before: the previous event of its LP, or the
// one that sent it.  However many threads there are, a run executes at least these one after the other, unless it executes
// some on speculation.
//
// For all threads of a rank.  An LP's chain is read and written by whoever executes it.  What a pending event brings along is
// where any thread finds it, because it may be executed by another one than sent it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "pdes/event.h"

namespace pdes {

class CriticalPath {
 public:
  explicit CriticalPath(LpId lps) : chain_(lps) {}

  // What an LP sends itself follows its own events anyway, and need not be remembered.
  void sent(LpId from, std::uint32_t sequence) {
    Waiting& waiting = waiting_of(from);
    const std::scoped_lock lock(waiting.mutex);
    waiting.chains[name(from, sequence)] = chain_[from];
  }
  // Before the LP's handler sends anything.
  void executes(LpId lp, LpId from, std::uint32_t sequence) {
    std::uint64_t before = chain_[lp];
    if (from != lp) before = std::max(before, taken(from, sequence));
    chain_[lp] = before + 1;
  }
  // In events; and where it ends: of equally long ones, at the smallest LP.
  std::uint64_t length() const noexcept { return chain_[last()]; }
  LpId last() const noexcept { return static_cast<LpId>(std::max_element(chain_.begin(), chain_.end()) - chain_.begin()); }

 private:
  struct alignas(64) Waiting {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::uint64_t> chains;  // by pending event: the one that ends with its sender
  };
  Waiting& waiting_of(LpId from) noexcept { return waiting_[from % waiting_.size()]; }
  // 0 for what came from outside.
  std::uint64_t taken(LpId from, std::uint32_t sequence) {
    Waiting& waiting = waiting_of(from);
    const std::scoped_lock lock(waiting.mutex);
    const auto sender = waiting.chains.find(name(from, sequence));
    if (sender == waiting.chains.end()) return 0;
    const std::uint64_t chain = sender->second;
    waiting.chains.erase(sender);
    return chain;
  }
  static std::uint64_t name(LpId from, std::uint32_t sequence) noexcept {
    return std::uint64_t{from} << kSequenceBits | sequence;
  }
  std::vector<std::uint64_t> chain_;  // by LP: the longest chain that ends with its last event
  std::array<Waiting, 256> waiting_;
};

}  // namespace pdes
