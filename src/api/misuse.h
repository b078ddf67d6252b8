// The end of a program that misused a block of any kind.
#pragma once

namespace hm {

// One line that names the mistake, then what is known of the block that the pointer leads to, on descriptor 2; then abort.
[[noreturn]] void die(const char* function, const void* pointer, const char* reason) noexcept;
// Hardened library: somebody has written to a small block that was freed; it is nobody's.
[[noreturn]] void die_written(const char* function, const void* block) noexcept;

}  // namespace hm
