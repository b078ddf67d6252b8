// The allocator behind the malloc family, which is written once, on these names of namespace hm:
//
//   allocate  deallocate  allocate_zeroed  allocate_aligned  reallocate  usable_size  out_of_memory  check_size
//   collect  usage  print_usage
//
// hmalloc has them all; a baseline has fewer, and baselines/contract.h builds the rest from those.
#pragma once
#if defined(HM_ALLOCATOR_HEADER)
#include HM_ALLOCATOR_HEADER
#else
#include "override/for_hmalloc.h"
#endif
