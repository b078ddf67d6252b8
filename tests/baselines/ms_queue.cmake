# The lock-free queue of VVMalloc, by itself.
add_executable(ms_queue_test ms_queue_test.cc ${PROJECT_SOURCE_DIR}/src/base/memory_tags.cc ${PROJECT_SOURCE_DIR}/src/base/os_pages.cc
  ${PROJECT_SOURCE_DIR}/src/base/secret.cc
  ${PROJECT_SOURCE_DIR}/src/base/system_call.cc)
target_include_directories(ms_queue_test PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(ms_queue_test PRIVATE HM_LIBC_CALLS)
target_link_libraries(ms_queue_test PRIVATE GTest::gtest GTest::gtest_main Threads::Threads)
gtest_discover_tests(ms_queue_test TEST_PREFIX baselines.vvmalloc. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
  PROPERTIES LABELS baselines TIMEOUT 1200)
