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

// Beside this library, or where the system looks: a wheel has none, as each machine has an MPI of its own.
void* library() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&ranks_of_process), &here) != 0) {
    const std::string path = here.dli_fname;
    if (void* found = dlopen((path.substr(0, path.rfind('/') + 1) + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  }
  if (void* found = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) return found;
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

// What failed is not tried again: MPI has ended by then, and starts only once.  MPI belongs to the process that started it: what
// a fork of it sent would be taken for that process's.
Ranks* ranks_of_process() {
  static const pid_t process = getpid();
  if (getpid() != process) throw Error("this process was forked by one of several ranks, and takes no part in them");
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
