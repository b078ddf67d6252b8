#include "foreign/ranks_library.h"

#include <exception>
#include <memory>

extern "C" [[gnu::visibility("default")]] pdes::Ranks* hm_pdes_start_ranks(const char* version, std::string& error) {
  static std::unique_ptr<pdes::Ranks> ranks;  // MPI ends with the process: it cannot be started twice
  if (std::string(version) != pdes::kRanksVersion) {
    error = std::string("libhmalloc-pdes-mpi.so is of hmalloc ") + pdes::kRanksVersion + ", not " + version;
    return nullptr;
  }
  try {
    ranks = pdes::start_ranks(nullptr, nullptr);
  } catch (const std::exception& what) { error = what.what(); }
  return ranks.get();
}
