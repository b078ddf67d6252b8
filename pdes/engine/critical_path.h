// The longest chain of events of a run of which each had to wait for the one before: the previous event of its LP, or the
// one that sent it.  However many threads there are, a run executes at least these one after the other, unless it executes
// some on speculation.  For the one thread of a run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "pdes/event.h"

namespace pdes {

class CriticalPath {
 public:
  explicit CriticalPath(LpId lps) : chain_(lps) {}

  // What an LP sends itself follows its own events anyway, and need not be remembered.
  void sent(LpId from, std::uint32_t sequence) { waiting_[name(from, sequence)] = chain_[from]; }
  // Before the LP's handler sends anything.
  void executes(LpId lp, LpId from, std::uint32_t sequence) {
    std::uint64_t before = chain_[lp];
    if (from != lp) {
      if (auto sender = waiting_.find(name(from, sequence)); sender != waiting_.end()) {
        before = std::max(before, sender->second);
        waiting_.erase(sender);
      }
    }
    chain_[lp] = before + 1;
  }
  // In events; and where it ends: of equally long ones, at the smallest LP.
  std::uint64_t length() const noexcept { return chain_[last()]; }
  LpId last() const noexcept { return static_cast<LpId>(std::max_element(chain_.begin(), chain_.end()) - chain_.begin()); }

 private:
  static std::uint64_t name(LpId from, std::uint32_t sequence) noexcept {
    return std::uint64_t{from} << kSequenceBits | sequence;
  }
  std::vector<std::uint64_t> chain_;                          // by LP: the longest chain that ends with its last event
  std::unordered_map<std::uint64_t, std::uint64_t> waiting_;  // by pending event: the chain that ends with its sender
};

}  // namespace pdes
