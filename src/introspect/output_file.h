// Files that options name.
#pragma once

namespace hm {

// In the name %p is the process id, so that each process gets its own file; %% is a percent sign.  flags: O_APPEND or O_TRUNC.
// Returns a descriptor, or a negative number after one line on descriptor 2.
int open_output(const char* option, const char* name, int flags, const char* suffix = "") noexcept;
void complain_of_output(const char* option, const char* name, const char* suffix = "") noexcept;  // that line
bool output_exists(const char* name) noexcept;
bool remove_output(const char* name, const char* suffix = "") noexcept;  // true if it is gone, whoever was quicker
bool rename_output(const char* name, const char* suffix, const char* new_suffix) noexcept;

}  // namespace hm
