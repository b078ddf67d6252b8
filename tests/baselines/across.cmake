# What every baseline is put through: the stress, and the patterns that tell who keeps the footprint bounded.
get_property(baselines GLOBAL PROPERTY HM_BASELINES)

function(hm_baseline_program program baseline)
  add_executable(${program} ${ARGN})
  target_link_libraries(${program} PRIVATE baseline_${baseline} Threads::Threads)
  target_compile_options(${program} PRIVATE -ftls-model=initial-exec -fno-builtin-malloc)
  if(HM_SANITIZE MATCHES undefined)  # see tests/unit
    target_compile_options(${program} PRIVATE -fno-sanitize=null)
  endif()
endfunction()

foreach(baseline IN LISTS baselines)
  hm_baseline_program(baseline_stress_${baseline} ${baseline} stress.cc stress_life.cc stress_blocks.cc)
  add_test(NAME baselines.${baseline}.stress COMMAND baseline_stress_${baseline} --seconds 3)
  set_tests_properties(baselines.${baseline}.stress PROPERTIES LABELS baselines TIMEOUT 120)

  hm_baseline_program(baseline_blowup_${baseline} ${baseline} blowup.cc blowup_patterns.cc)
  if(NOT HM_SANITIZE)  # it measures, and runs one thread at a time
    add_test(NAME baselines.${baseline}.blowup COMMAND baseline_blowup_${baseline})
    set_tests_properties(baselines.${baseline}.blowup PROPERTIES LABELS baselines TIMEOUT 120)
  endif()
endforeach()
