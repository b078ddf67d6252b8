// What is said when the program touches a guarded block that was freed, or what lies beside one.
#pragma once

namespace hm {

// At start: from now on a SIGSEGV in the guards is explained on descriptor 2.  Whatever would have happened without that happens
// then: the action that was there before is taken, which most often ends the program.  A program that sets an action of its own
// later replaces this one.
void answer_faults() noexcept;

}  // namespace hm
