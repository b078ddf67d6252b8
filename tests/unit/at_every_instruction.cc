#include "at_every_instruction.h"

#if HM_STEPS

#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>

#include "base/os_pages.h"
#include "base/process.h"

namespace hm::test {

namespace {

constexpr unsigned long long kTrapFlag = 0x100;

Steps steps;
Stepping how;
const std::function<bool()>* child_check = nullptr;
bool goes_on = false;  // in the child

bool child_is_well() {
  ++steps.forks;
  return child_succeeds(
      [] {
        my_name.id = 0;
        set_my_heap(nullptr);
        return (*child_check)();
      },
      _Fork);  // no handlers: what runs here is in the middle of something
}

bool child_that_goes_on_is_well(ucontext_t& context) {
  ++steps.forks;
  pid_t child = _Fork();
  if (child == 0) {
    if (!how.repair()) _exit(0);
    goes_on = true;
    context.uc_mcontext.gregs[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag);
    return true;
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

// In the kernel's image, which changes nothing of ours, a clock is read again until it has not moved meanwhile.
bool is_the_kernels(greg_t instruction) {
  return static_cast<uintptr_t>(instruction) - getauxval(AT_SYSINFO_EHDR) < 4 * os::page_size();
}

void after_instruction(int, siginfo_t*, void* of) {
  auto& context = *static_cast<ucontext_t*>(of);
  if (is_the_kernels(context.uc_mcontext.gregs[REG_RIP])) return;
  if (steps.failed > 0 || ++steps.seen % how.stride != 0 || !how.worth_a_fork()) return;
  if (!(how.repair ? child_that_goes_on_is_well(context) : child_is_well())) steps.failed = steps.seen;
}

}  // namespace

Steps fork_at_every_instruction(const std::function<void()>& operation, const std::function<bool()>& check,
                                const Stepping& stepping) {
  steps = {};
  how = stepping;
  if (getenv("HM_EVERY_INSTRUCTION") != nullptr) how.stride = 1;
  child_check = &check;
  struct sigaction trap{}, before{};
  trap.sa_sigaction = after_instruction;
  trap.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &trap, &before);
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
  operation();
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  if (goes_on) _exit(check() ? 0 : 1);
  sigaction(SIGTRAP, &before, nullptr);
  return steps;
}

}  // namespace hm::test

#endif
