// One window's messages and votes, among all ranks.  There are two ways, which give the same: all_to_all.h for few ranks,
// sparse.h for many.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pdes/mpi.h"

namespace pdes {

class WindowExchange {
 public:
  virtual ~WindowExchange() = default;
  // As Ranks has them, under the mutex of Watch.
  virtual void begin(std::vector<std::vector<std::byte>>& outgoing, const Ranks::Vote& mine) = 0;
  virtual Ranks::Vote end() = 0;
  virtual std::span<const std::byte> received(int rank) const noexcept = 0;
};

inline Ranks::Vote combined(const Ranks::Vote& a, const Ranks::Vote& b) noexcept {
  return {a.least < b.least ? a.least : b.least, a.flags | b.flags, a.end < b.end ? a.end : b.end};
}

}  // namespace pdes
