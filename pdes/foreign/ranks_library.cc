#include "foreign/ranks_library.h"

#include <unistd.h>

#include <exception>
#include <memory>

namespace {

// MPI ends with the process that started it; a fork of it that ends must not.
struct End {
  pid_t process = getpid();
  void operator()(pdes::Ranks* ranks) const {
    if (getpid() == process) delete ranks;
  }
};

}  // namespace

extern "C" [[gnu::visibility("default")]] pdes::Ranks* hm_pdes_start_ranks(const char* version, std::string& error) {
  static std::unique_ptr<pdes::Ranks, End> ranks;
  if (std::string(version) != pdes::kRanksVersion) {
    error = std::string("libhmalloc-pdes-mpi.so is of hmalloc ") + pdes::kRanksVersion + ", not " + version;
    return nullptr;
  }
  try {
    ranks.reset(pdes::start_ranks(nullptr, nullptr).release());
  } catch (const std::exception& what) { error = what.what(); }
  return ranks.get();
}
