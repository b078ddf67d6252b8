// Converts the program's pointer to our block.
#pragma once
#include "baselines/vvmalloc/block.h"

namespace hm::vvmalloc {

// Ends the program unless the address map says that the header is our memory, the header is a used block's, and the
// footer agrees.
const Block* checked(const void* payload, const char* function) noexcept;
inline Block* checked(void* payload, const char* function) noexcept {
  return const_cast<Block*>(checked(static_cast<const void*>(payload), function));
}

}  // namespace hm::vvmalloc
