// After the threads have ended: every structure examines itself, and nothing may be left.
#pragma once
#include <sys/types.h>

namespace stress {

// Ends the program if anything is wrong.  No other thread runs.
void examine_everything();
// All blocks have been freed: after a collection the allocator must hold none.
void expect_nothing_held();
// Waits for a child; ends the program if it hangs or fails.
void require_good_end(pid_t child, const char* whose);

}  // namespace stress
