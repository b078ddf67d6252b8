// What has to be known of an instruction of x86-64: whether it is one of the marks, and whether it locks its line.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cores {

enum class Mark : std::uint8_t { none, enter, leave };

Mark mark_in(const void* instruction, std::size_t bytes);

// With the prefix LOCK, or an exchange with memory, which locks without it.
bool is_locked(const void* instruction, std::size_t bytes);

}  // namespace cores
