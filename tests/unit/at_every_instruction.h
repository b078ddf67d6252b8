// A fork at every instruction of an operation, by a thread that is not in it: what the child of such a fork finds is what
// its repair has to cope with.  x86-64 alone traps after each instruction where the program asks for it itself.
#pragma once
#include <functional>

#include "support.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define HM_STEPS 1
#else
#define HM_STEPS 0
#endif

namespace hm::test {

struct Steps {
  size_t seen = 0;  // instructions
  size_t forks = 0;
  size_t failed = 0;  // the first at which a child did not end with true, in time; 0: none
};
struct Stepping {
  size_t stride = 1;  // forks at each of so many instructions; at each where HM_EVERY_INSTRUCTION is set in the environment,
  std::function<bool()> worth_a_fork = [] { return true; };  // and says so, in the parent
  // If set, it is a signal handler of the operation's own thread that forks: the child repairs what other threads had in
  // hands, goes on, and check() comes after the operation.  False: not at this instruction.
  std::function<bool()> repair = nullptr;
};
// check() runs in the child, before anything was repaired: there the thread that was in the operation is another one, which
// the child does not have.
Steps fork_at_every_instruction(const std::function<void()>& operation, const std::function<bool()>& check,
                                const Stepping& stepping = {});

}  // namespace hm::test
