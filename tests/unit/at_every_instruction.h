// A fork at every instruction of an operation, by a thread that is not in it: what the child of such a fork finds is what
// its repair has to cope with.  x86-64 alone traps after each instruction where the program asks for it itself.
#pragma once
#include <functional>

#include "support.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define HM_STEPS 1
#else
#define HM_STEPS 0
#endif

namespace hm::test {

// The child of a fork, before its repair: the thread that was in the operation is another one, which it does not have.
void become_another_thread();

struct Steps {
  size_t seen = 0;    // instructions
  size_t failed = 0;  // the first at which a child did not end with true, in time; 0: none
};
// check() runs in the child of each `stride`th instruction's fork, before anything was repaired; of each one's where
// HM_EVERY_INSTRUCTION is set in the environment.
Steps fork_at_every_instruction(const std::function<void()>& operation, const std::function<bool()>& check,
                                size_t stride = 1);

}  // namespace hm::test
