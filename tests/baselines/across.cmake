# What every baseline is put through: the contract, the stress, and the patterns that tell who keeps the footprint bounded.
get_property(baselines GLOBAL PROPERTY HM_BASELINES)

foreach(baseline IN LISTS baselines)
  # Of Hoard the one that examines itself: hoard.cmake.
  string(REGEX REPLACE "^hoard$" "hoard_examined" library ${baseline})
  hm_baseline_test(baseline_contract_${baseline} ${library} contract_test.cc)

  hm_baseline_program(baseline_stress_${baseline} ${library} stress.cc)
  add_test(NAME baselines.${baseline}.stress COMMAND baseline_stress_${baseline} 3)
  set_tests_properties(baselines.${baseline}.stress PROPERTIES LABELS baselines TIMEOUT 600)

  if(NOT HM_SANITIZE)  # it measures, and runs one thread at a time
    hm_baseline_test(baseline_blowup_${baseline} ${baseline} blowup_test.cc)
  endif()
endforeach()

# One lock around everything.
foreach(baseline one_lock ar_malloc-lock)
  hm_baseline_test(baseline_global_lock_${baseline} ${baseline} global_lock_test.cc)
endforeach()

if(NOT HM_SANITIZE)
  list(JOIN baselines " " names)
  add_executable(baseline_preloaded_test preloaded_test.cc)
  add_dependencies(baseline_preloaded_test hmalloc-baselines)
  target_link_libraries(baseline_preloaded_test PRIVATE GTest::gtest GTest::gtest_main)
  target_compile_definitions(baseline_preloaded_test PRIVATE HM_NAMES="${names}"
    HM_LIBRARIES="${CMAKE_BINARY_DIR}/baselines")
  gtest_discover_tests(baseline_preloaded_test TEST_PREFIX baselines. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS baselines TIMEOUT 300)
endif()
