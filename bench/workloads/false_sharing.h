// What active-false and passive-false do with a block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

// Writes every byte of the block so many times.  Volatile: each write goes to the cache, and conflicts with other
// writers of the line.
inline void write_often(void* block, std::size_t size, std::uint32_t writes) {
  auto* bytes = static_cast<volatile char*>(block);
  for (std::uint32_t i = 0; i < writes; ++i) {
    for (std::size_t k = 0; k < size; ++k) bytes[k] = static_cast<char>(i);
  }
}

}  // namespace bench
