// The allocator behind the malloc family, which is written once, on these names of namespace hm:
//
//   allocate  deallocate  allocate_zeroed  allocate_aligned  reallocate  usable_size  out_of_memory  check_size
//   collect  usage  print_usage
//
// hmalloc has them all; a baseline has fewer, and baselines/contract.h builds the rest from those.  Those that get or return
// a block are called as names of hm::front, which are the same, but for the hardened library (api/front.h).
#pragma once
#if defined(HM_ALLOCATOR_HEADER)
#include HM_ALLOCATOR_HEADER
namespace hm {
namespace front = ::hm;
}
#else
#include "override/for_hmalloc.h"
#endif
