// Replaces metis.cc in libraries that go to other machines, which have METIS or not: it is loaded when it is asked for.
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <initializer_list>

#include "metis/divide.h"
#include "pdes/metis.h"

namespace pdes {
namespace {

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

template <class Index>
Partitioner partitioner(void* library) {
  using Loaded = Metis<Index, float>;
  const Loaded metis{function<typename Loaded::Divide>(library, "METIS_PartGraphRecursive"),
                     function<typename Loaded::Divide>(library, "METIS_PartGraphKway"),
                     {}};
  return [metis](const LpGraph& graph, unsigned threads) { return metis.divide(graph, threads); };
}

// METIS is built with indices of 32 or of 64 bits, and does not say which; but it sets its 40 options all to -1.
bool has_wide_indices(void* library) {
  std::array<std::int32_t, 1024> options{};
  function<int (*)(void*)>(library, "METIS_SetDefaultOptions")(options.data());
  return options[40] != 0;
}

}  // namespace

Partitioner metis_partitioner() {
  void* metis = library();
  return has_wide_indices(metis) ? partitioner<std::int64_t>(metis) : partitioner<std::int32_t>(metis);
}

}  // namespace pdes
