// What is known of a small block, for who reports that it was misused: a line on descriptor 2.  For any thread, also in a signal
// handler.  A state may be an old one by the time it is read.
#pragma once

namespace hm {

inline constexpr const char* kWrittenAfterFree = "written to after it was freed";

// The address lies in a superblock: the size and state of the block there, and the states of its neighbours; in the hardened
// library also what was asked for.  Returns the block, or null if the address lies behind the last.
const void* describe_small(const void* pointer) noexcept;
// Hardened library: the block is nobody's and should be all zero.
void describe_written(const void* block) noexcept;

}  // namespace hm
