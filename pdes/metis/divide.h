// A graph of LPs divided by METIS, whose functions are linked (metis.cc) or loaded (loaded.cc).  Index and Real are its idx_t
// and real_t.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "pdes/lp_graph.h"
#include "pdes/options.h"

namespace pdes {

template <class Index, class Real>
struct Metis {
  using Divide = int (*)(Index* nvtxs, Index* ncon, Index* xadj, Index* adjncy, Index* vwgt, Index* vsize, Index* adjwgt,
                         Index* nparts, Real* tpwgts, Real* ubvec, Index* options, Index* edgecut, Index* part);
  static constexpr int kOk = 1, kNoMemory = -3;
  static constexpr unsigned kFew = 8;  // parts, for which its manual advises recursive bisection

  Divide recursive, k_way;
  std::vector<Index> options;  // none: its defaults

  std::vector<std::uint16_t> divide(const LpGraph& graph, unsigned threads) const {
    std::vector<std::uint16_t> owner(graph.size());
    if (owner.size() <= threads) {  // METIS would print a complaint where a program's results go
      std::iota(owner.begin(), owner.end(), std::uint16_t{0});
      return owner;
    }
    check_size(graph);
    std::vector<Index> first = taken(graph.first), to = taken(graph.to), weights = taken(graph.weights);
    std::vector<Index> part(owner.size()), chosen = options;
    auto lps = static_cast<Index>(owner.size()), constraints = Index{1}, parts = static_cast<Index>(threads);
    Index cut = 0;
    // What it does to the process is for one at a time.
    static std::mutex one;
    const std::lock_guard lock(one);
    const int status = (threads <= kFew ? recursive : k_way)(&lps, &constraints, first.data(), to.data(), nullptr, nullptr,
                                                             weights.data(), &parts, nullptr, nullptr,
                                                             chosen.empty() ? nullptr : chosen.data(), &cut, part.data());
    if (status == kNoMemory) throw Error("METIS has not enough memory to divide the graph of the LPs");
    if (status != kOk) throw Error("METIS could not divide the graph of the LPs");
    std::transform(part.begin(), part.end(), owner.begin(), [](Index thread) { return static_cast<std::uint16_t>(thread); });
    return owner;
  }

 private:
  static void check_size(const LpGraph& graph) {
    const auto weight = std::accumulate(graph.weights.begin(), graph.weights.end(), std::uint64_t{0});
    constexpr auto kMost = std::numeric_limits<Index>::max();
    if (weight > static_cast<std::uint64_t>(kMost))
      throw Error("METIS divides graphs with at most " + std::to_string(kMost / 2) +
                  " links, by their weight, and the LPs have " + std::to_string(weight / 2));
  }
  template <class Number>
  static std::vector<Index> taken(const std::vector<Number>& numbers) {
    std::vector<Index> copy(numbers.size() + 1);  // never without an address
    std::transform(numbers.begin(), numbers.end(), copy.begin(), [](Number number) { return static_cast<Index>(number); });
    return copy;
  }
};

}  // namespace pdes
