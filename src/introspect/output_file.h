// Files that options name.
#pragma once
#include <fcntl.h>

#include "base/sizes.h"

namespace hm {

// Behind a name: for what is not finished, or stands beside it.
struct Suffix {
  const char* text = "";
  uint64_t number = 0;  // behind that, unless it is zero
};

// In the middle of what the program does nobody waits for a reader.
inline constexpr int kDoNotWait = O_NONBLOCK;

// In the name %p is the process id, so that each process gets its own file; %% is a percent sign.  flags: O_APPEND, O_TRUNC or
// O_EXCL; without kDoNotWait writes wait for the reader of a pipe.  Nobody waits for one that is still to come: a pipe without a
// reader cannot be opened.  Returns a descriptor, or a negative number.
int open_output(const char* name, int flags, Suffix suffix = {}) noexcept;
void complain_of_output(const char* option, const char* name, const char* suffix = "") noexcept;  // one line on descriptor 2
bool output_exists(const char* name) noexcept;
bool output_is_special(const char* name) noexcept;                  // it exists, and is no file: a pipe, a device, a folder
bool remove_output(const char* name, Suffix suffix = {}) noexcept;  // true if it is gone, whoever was quicker
bool rename_output(const char* name, Suffix suffix, Suffix new_suffix) noexcept;

}  // namespace hm
