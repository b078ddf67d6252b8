// How the heap lies in memory, for tools that read it from outside, in a process that runs, is stopped, or left a core file
// (lab/hmalloc_lab/inspect; docs/design.md, "The layout record").
#pragma once

namespace hm {

// What is known at run time only.  Once, before the program has threads.
void complete_layout() noexcept;

}  // namespace hm
