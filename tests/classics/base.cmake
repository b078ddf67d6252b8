# The ground that the classics share and hmalloc does not have, and the door to a classic: on the simplest of them.
set(unit ${PROJECT_SOURCE_DIR}/tests/unit)
hm_classic_test(classic_base_test one_lock
  ${unit}/large_blocks_test.cc ${unit}/large_mappings_test.cc ${unit}/regions_test.cc ${unit}/thread_exit_test.cc
  ${unit}/fork_locks_test.cc base_door_test.cc)
if(NOT HM_SANITIZE)  # a sanitizer has these system calls for itself
  hm_classic_test(classic_base_kernel_test one_lock base_kernel_test.cc)
  add_dependencies(classic_base_test classic_one_lock_shared)
  target_compile_definitions(classic_base_test PRIVATE HM_PRELOADED="$<TARGET_FILE:classic_one_lock_shared>")
endif()
