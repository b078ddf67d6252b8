#include "at_every_instruction.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>

#include "base/os_pages.h"
#include "base/process.h"

namespace hm::test {

void become_another_thread() {
  my_name.id = 0;
  set_my_heap(nullptr);
  hm_local_tls_ = kNoPlace;
}

#if HM_STEPS

namespace {

constexpr unsigned long long kTrapFlag = 0x100;
constexpr unsigned kPatience = 20;

Steps steps;
size_t every = 1;
const std::function<bool()>* child_check = nullptr;

bool child_succeeds() {
  pid_t child = _Fork();  // no handlers: what runs here is in the middle of something
  if (child == 0) {
    alarm(kPatience);
    become_another_thread();
    _exit((*child_check)() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// In the kernel's image, which changes nothing of ours, a clock is read again until it has not moved meanwhile.
bool is_the_kernels(greg_t instruction) {
  return static_cast<uintptr_t>(instruction) - getauxval(AT_SYSINFO_EHDR) < 4 * os::page_size();
}

void after_instruction(int, siginfo_t*, void* context) {
  if (is_the_kernels(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP])) return;
  if (steps.failed == 0 && ++steps.seen % every == 0 && !child_succeeds()) steps.failed = steps.seen;
}

}  // namespace

Steps fork_at_every_instruction(const std::function<void()>& operation, const std::function<bool()>& check, size_t stride) {
  steps = {};
  every = getenv("HM_EVERY_INSTRUCTION") != nullptr ? 1 : stride;
  child_check = &check;
  struct sigaction trap{}, before{};
  trap.sa_sigaction = after_instruction;
  trap.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &trap, &before);
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
  operation();
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  sigaction(SIGTRAP, &before, nullptr);
  return steps;
}

#endif

}  // namespace hm::test
