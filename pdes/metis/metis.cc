#include "pdes/metis.h"

#include <metis.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>

#include "pdes/options.h"

namespace pdes {
namespace {

constexpr unsigned kFew = 8;  // parts, for which METIS's manual advises recursive bisection

void check_size(const LpGraph& graph) {
  const auto weight = std::accumulate(graph.weights.begin(), graph.weights.end(), std::uint64_t{0});
  constexpr auto kMost = std::numeric_limits<idx_t>::max();
  if (weight > static_cast<std::uint64_t>(kMost))
    throw Error("METIS divides graphs with at most " + std::to_string(kMost / 2) +
                " links, by their weight, and the LPs have " + std::to_string(weight / 2));
}

template <class Number>
std::vector<idx_t> for_metis(const std::vector<Number>& numbers) {
  std::vector<idx_t> taken(numbers.size() + 1);  // never without an address
  std::transform(numbers.begin(), numbers.end(), taken.begin(), [](Number number) { return static_cast<idx_t>(number); });
  return taken;
}

std::vector<std::uint16_t> divide(const LpGraph& graph, unsigned threads) {
  std::vector<std::uint16_t> owner(graph.size());
  if (owner.size() <= threads) {  // METIS would print a complaint where a program's results go
    std::iota(owner.begin(), owner.end(), std::uint16_t{0});
    return owner;
  }
  check_size(graph);
  std::vector<idx_t> first = for_metis(graph.first), to = for_metis(graph.to), weights = for_metis(graph.weights);
  std::vector<idx_t> part(owner.size());
  std::array<idx_t, METIS_NOPTIONS> options;
  METIS_SetDefaultOptions(options.data());
  options[METIS_OPTION_SEED] = 1;
  auto lps = static_cast<idx_t>(owner.size()), constraints = idx_t{1}, parts = static_cast<idx_t>(threads);
  idx_t cut = 0;
  // What it does to the process is for one at a time.
  static std::mutex one;
  const std::lock_guard lock(one);
  const int status = (threads <= kFew ? METIS_PartGraphRecursive : METIS_PartGraphKway)(
      &lps, &constraints, first.data(), to.data(), nullptr, nullptr, weights.data(), &parts, nullptr, nullptr,
      options.data(), &cut, part.data());
  if (status == METIS_ERROR_MEMORY) throw Error("METIS has not enough memory to divide the graph of the LPs");
  if (status != METIS_OK) throw Error("METIS could not divide the graph of the LPs");
  std::transform(part.begin(), part.end(), owner.begin(), [](idx_t chosen) { return static_cast<std::uint16_t>(chosen); });
  return owner;
}

}  // namespace

Partitioner metis_partitioner() { return divide; }

}  // namespace pdes
