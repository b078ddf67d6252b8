// The functions that the entry points call: those of api/allocator.h, or the hardened library's around them.
#pragma once
#include "api/allocator.h"

#if defined(HM_HARDENED)
#include "api/hardened.h"
#else
namespace hm {
namespace front = ::hm;
inline size_t check_blocks() noexcept { return 0; }  // what lies outside of blocks is not known
}  // namespace hm
#endif
