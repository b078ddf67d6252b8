#include "foreign/ranks.h"

#include <dlfcn.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "foreign/ranks_library.h"
#include "mpi/launched.h"
#include "pdes/options.h"

namespace pdes {
namespace {

constexpr char kLibrary[] = "libhmalloc-pdes-mpi.so";

// A rank is the process that was launched, not its forks: what one of them sent would be taken for that process's.
const pid_t kLoadedBy = getpid();

// Beside this library, or where the system looks: a wheel has none, as each machine has an MPI of its own.
void* library() {
  Dl_info here{};
  std::string path = kLibrary;
  if (dladdr(reinterpret_cast<void*>(&ranks_of_process), &here) != 0) {
    const std::string own = here.dli_fname, beside = own.substr(0, own.rfind('/') + 1) + kLibrary;
    if (access(beside.c_str(), F_OK) == 0) path = beside;
  }
  if (void* found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  throw Error("several ranks need " + std::string(kLibrary) + ", which hmalloc installs where there is MPI: " + dlerror());
}

Ranks* started() {
  if (!launched_with_others()) return nullptr;
  auto* start = reinterpret_cast<StartRanks*>(dlsym(library(), kStartRanks));
  if (start == nullptr) throw Error(std::string(kLibrary) + " is not of this version");
  std::string error;
  Ranks* ranks = start(kRanksVersion, error);
  if (!error.empty()) throw Error(error);
  return ranks;
}

}  // namespace

// What failed is not tried again: MPI has ended by then, and starts only once.
Ranks* ranks_of_process() {
  if (launched_with_others() && getpid() != kLoadedBy)
    throw Error("this process was forked by one of several ranks, and takes no part in them");
  static std::string error;
  static Ranks* const ranks = [] {
    try {
      return started();
    } catch (const std::exception& what) { error = what.what(); }
    return static_cast<Ranks*>(nullptr);
  }();
  if (!error.empty()) throw Error(error);
  return ranks;
}

}  // namespace pdes
