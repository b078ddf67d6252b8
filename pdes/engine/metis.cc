// METIS is loaded when it is asked for: programs and libraries go to machines with it and without.
#include "pdes/metis.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "pdes/options.h"

namespace pdes {
namespace {

using Owners = std::vector<std::uint16_t>;

// It stays: who has divided once will do so again.
void* library() {
  if (const char* named = std::getenv("HM_METIS_LIBRARY")) {
    if (void* found = dlopen(named, RTLD_NOW | RTLD_LOCAL)) return found;
    throw Error(std::string("METIS cannot be loaded as HM_METIS_LIBRARY says: ") + dlerror());
  }
  for (const char* name : {"libmetis.so.5", "libmetis.so"})
    if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  throw Error(
      "dividing the graph of the LPs among threads needs METIS: install libmetis5 (Debian, Ubuntu) or metis "
      "(Fedora, conda)");
}

template <class Function>
Function function(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) throw Error(std::string("METIS cannot be used: it has no ") + name);
  return reinterpret_cast<Function>(found);
}

// METIS is built with indices of 32 or of 64 bits, and does not say which; but it sets its 40 options all to -1.
bool has_wide_indices(void* library) {
  std::array<std::int32_t, 1024> options{};
  function<int (*)(void*)>(library, "METIS_SetDefaultOptions")(options.data());
  return options[40] != 0;
}

template <class Index>
void check_size(const LpGraph& graph) {
  const auto weight = std::accumulate(graph.weights.begin(), graph.weights.end(), std::uint64_t{0});
  constexpr auto kMost = std::numeric_limits<Index>::max();
  if (weight > static_cast<std::uint64_t>(kMost))
    throw Error("METIS divides graphs with at most " + std::to_string(kMost / 2) +
                " links, by their weight, and the LPs have " + std::to_string(weight / 2));
}

template <class Index, class Number>
std::vector<Index> taken(const std::vector<Number>& numbers) {
  std::vector<Index> copy(numbers.size() + 1);  // never without an address
  std::transform(numbers.begin(), numbers.end(), copy.begin(), [](Number number) { return static_cast<Index>(number); });
  return copy;
}

template <class Index>
Owners divided(void* library, const LpGraph& graph, unsigned threads) {
  using Divide = int(Index * nvtxs, Index * ncon, Index * xadj, Index * adjncy, Index * vwgt, Index * vsize, Index * adjwgt,
                     Index * nparts, float* tpwgts, float* ubvec, Index* options, Index* edgecut, Index* part);
  constexpr int kOk = 1, kNoMemory = -3;
  constexpr unsigned kFew = 8;  // parts, for which its manual advises recursive bisection
  const auto divide = function<Divide*>(library, threads <= kFew ? "METIS_PartGraphRecursive" : "METIS_PartGraphKway");
  check_size<Index>(graph);
  std::vector<Index> first = taken<Index>(graph.first), to = taken<Index>(graph.to), weights = taken<Index>(graph.weights);
  std::vector<Index> part(graph.size());
  auto lps = static_cast<Index>(graph.size()), constraints = Index{1}, parts = static_cast<Index>(threads);
  Index cut = 0;
  // What it does to the process is for one at a time.
  static std::mutex one;
  const std::lock_guard lock(one);
  const int status = divide(&lps, &constraints, first.data(), to.data(), nullptr, nullptr, weights.data(), &parts, nullptr,
                            nullptr, nullptr, &cut, part.data());
  if (status == kNoMemory) throw Error("METIS has not enough memory to divide the graph of the LPs");
  if (status != kOk) throw Error("METIS could not divide the graph of the LPs");
  Owners owner(part.size());
  std::transform(part.begin(), part.end(), owner.begin(), [](Index thread) { return static_cast<std::uint16_t>(thread); });
  return owner;
}

}  // namespace

Partitioner metis_partitioner() {
  return [](const LpGraph& graph, unsigned threads) {
    if (graph.size() <= threads) {  // METIS would print a complaint where a program's results go
      Owners owner(graph.size());
      std::iota(owner.begin(), owner.end(), std::uint16_t{0});
      return owner;
    }
    void* metis = library();
    return has_wide_indices(metis) ? divided<std::int64_t>(metis, graph, threads)
                                   : divided<std::int32_t>(metis, graph, threads);
  };
}

}  // namespace pdes
