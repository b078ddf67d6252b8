#include "at_every_instruction.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

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

void after_instruction(int) {
  if (steps.failed == 0 && ++steps.seen % every == 0 && !child_succeeds()) steps.failed = steps.seen;
}

}  // namespace

Steps fork_at_every_instruction(const std::function<void()>& operation, const std::function<bool()>& check,
                                size_t stride) {
  steps = {};
  every = getenv("HM_EVERY_INSTRUCTION") != nullptr ? 1 : stride;
  child_check = &check;
  struct sigaction trap {}, before {};
  trap.sa_handler = after_instruction;
  sigaction(SIGTRAP, &trap, &before);
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
  operation();
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  sigaction(SIGTRAP, &before, nullptr);
  return steps;
}

#endif

}  // namespace hm::test
