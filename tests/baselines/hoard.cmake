# Hoard, rule by rule.  Invariant 3 is examined after every operation here, which the library itself does in debug
# builds alone.
get_target_property(hoard_sources baseline_hoard SOURCES)
get_target_property(hoard_definitions baseline_hoard COMPILE_DEFINITIONS)
hm_library(baseline_hoard_examined STATIC ${hoard_sources})
target_include_directories(baseline_hoard_examined PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(baseline_hoard_examined PUBLIC ${hoard_definitions} HM_BASELINE_CHECKS)

hm_baseline_test(hoard_test hoard_examined hoard_blowup_test.cc hoard_counters_test.cc hoard_heap_test.cc
  hoard_options_test.cc hoard_size_classes_test.cc hoard_superblock_test.cc hoard_threads_test.cc hoard_transfer_test.cc)

# Some once more with other options, the ends of their ranges among them.
function(hm_hoard_test name option)
  add_test(NAME baselines.hoard.${name}.${option} COMMAND ${ARGN})
  set_tests_properties(baselines.hoard.${name}.${option} PROPERTIES LABELS baselines TIMEOUT 600
    ENVIRONMENT HOARD_${option})
endfunction()
foreach(option KEEP=0 EMPTY_FRACTION=1/10 EMPTY_FRACTION=1/2 EMPTY_FRACTION=1 SUPERBLOCK=4K SUPERBLOCK=1M CLASS_BASE=1.1
               CLASS_BASE=4 HEAPS=1)
  hm_hoard_test(stress ${option} baseline_stress_hoard 1)
  foreach(test HoardRandom.FewClasses HoardRandom.ManyClasses)
    hm_hoard_test(${test} ${option} hoard_test --gtest_filter=${test})
  endforeach()
endforeach()
