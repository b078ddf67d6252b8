// The allocator behind the door.  The malloc family is written once, on these names of namespace hm:
//
//   allocate  deallocate  allocate_zeroed  allocate_aligned  reallocate  usable_size  out_of_memory  check_size
//   collect  usage  print_usage
//
// hmalloc has them itself; a classic has fewer, and for_classic.h makes the rest of them.
#pragma once
#if defined(HM_CLASSIC)
#include "door/for_classic.h"
#else
#include "door/for_hmalloc.h"
#endif
