#include "record.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harvest.h"
#include "spool.h"
#include "trace.h"

namespace fs = std::filesystem;

namespace hm::trace {
namespace {

// A folder for the spools beside the trace; removed with this object.
class SpoolFolder {
 public:
  explicit SpoolFolder(const fs::path& file) {
    std::string name = file.string() + ".spools.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) { throw Failure(file.string() + ": cannot be written: " + std::strerror(errno)); }
    path_ = fs::absolute(name);
  }
  ~SpoolFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// What session.cc asks of the kernel for each chunk of records.
void require_kernel() {
  if (madvise(nullptr, 0, MADV_POPULATE_WRITE) != 0 && errno == EINVAL) throw Failure("recording needs Linux 5.14 or newer");
}

fs::path recorder_library() {
  fs::path library = fs::read_symlink("/proc/self/exe").parent_path() / "libhmalloc-record.so";
  if (!fs::exists(library)) throw Failure(library.string() + ": the recorder is missing");
  if (library.string().find_first_of(" :") != std::string::npos) {
    throw Failure(library.string() + ": cannot be preloaded, its path has a space or a colon");
  }
  return library;
}

// What this process itself was preloaded with comes after the recorder: the allocator to record with.
void prepare_environment(const fs::path& spools, uint64_t limit) {
  const char* inherited = getenv("LD_PRELOAD");
  std::string preload = recorder_library().string();
  if (inherited != nullptr && *inherited != 0) preload += std::string(":") + inherited;
  setenv("LD_PRELOAD", preload.c_str(), 1);
  setenv(kFolderVariable, spools.c_str(), 1);
  setenv(kLimitVariable, std::to_string(limit).c_str(), 1);
}

pid_t start(const std::vector<std::string>& command, const sigset_t& mask) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  int error = posix_spawnp(&pid, words[0], nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error == ENOENT) throw Failure(command[0] + ": program not found", 127);
  if (error != 0) throw Failure(command[0] + ": cannot be started: " + std::strerror(error), 126);
  return pid;
}

// Runs the program to its end and forwards signals that would have ended it.  A signal from a terminal has already
// reached the program, which is in the same process group.
int run(const std::vector<std::string>& command, pid_t& pid) {
  sigset_t waited, before;
  sigemptyset(&waited);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&waited, signal);
  sigprocmask(SIG_BLOCK, &waited, &before);
  pid = start(command, before);
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    siginfo_t signal;
    if (sigwaitinfo(&waited, &signal) > 0 && signal.si_signo != SIGCHLD && signal.si_code != SI_KERNEL) {
      kill(pid, signal.si_signo);
    }
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int record(const std::vector<std::string>& command, fs::path file, uint64_t limit) {
  require_kernel();
  if (file.empty()) file = fs::path(command[0]).filename().string() + kSuffix;
  SpoolFolder folder(file);
  prepare_environment(folder.path(), limit);
  pid_t pid = 0;
  int code = run(command, pid);
  bool is_recorded = harvest(folder.path(), file, pid);
  if (is_recorded) return code;
  std::fprintf(stderr, "hmalloc trace: %s: nothing recorded: %s\n", command[0].c_str(), why_nothing(command[0]));
  return code == 0 ? 1 : code;
}

}  // namespace hm::trace
