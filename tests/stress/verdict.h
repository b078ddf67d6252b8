// After the threads have ended: every structure examines itself, and nothing may be left.
#pragma once

namespace stress {

// Ends the program if anything is wrong.  No other thread runs.
void examine_everything();
// All blocks have been freed: after a collection the allocator must hold none.
void expect_nothing_held();

}  // namespace stress
