# What the baselines share and hmalloc does not have: on the simplest of them.
hm_baseline_test(baseline_common_test one_lock large_blocks_test.cc regions_test.cc fork_locks_test.cc)
if(NOT HM_SANITIZE)  # a sanitizer has these system calls for itself
  hm_baseline_test(baseline_common_kernel_test one_lock common_kernel_test.cc)
endif()
