// What is known of a small block, for who reports that it was misused.
#pragma once

namespace hm {

// A line on descriptor 2 about the block that the address lies in, which is one of a superblock: its size, its state, those of
// its neighbours; in the hardened library also what was asked for, and the first byte that was written after a free.  For any
// thread, also in a signal handler.  A state may be an old one by the time it is read.
void describe_small(const void* pointer) noexcept;

}  // namespace hm
