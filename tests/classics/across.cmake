# What every classic is put through: the stress, and the patterns that tell who keeps the footprint bounded.
get_property(classics GLOBAL PROPERTY HM_CLASSICS)

function(hm_classic_program program classic)
  add_executable(${program} ${ARGN})
  target_link_libraries(${program} PRIVATE classic_${classic} Threads::Threads)
  target_compile_options(${program} PRIVATE -ftls-model=initial-exec -fno-builtin-malloc)
  if(HM_SANITIZE MATCHES undefined)  # see tests/unit
    target_compile_options(${program} PRIVATE -fno-sanitize=null)
  endif()
endfunction()

foreach(classic IN LISTS classics)
  hm_classic_program(classic_stress_${classic} ${classic} stress.cc stress_life.cc stress_blocks.cc)
  add_test(NAME classics.${classic}.stress COMMAND classic_stress_${classic} --seconds 3)
  set_tests_properties(classics.${classic}.stress PROPERTIES LABELS classics TIMEOUT 120)

  hm_classic_program(classic_blowup_${classic} ${classic} blowup.cc blowup_patterns.cc)
  if(NOT HM_SANITIZE)  # it measures, and runs one thread at a time
    add_test(NAME classics.${classic}.blowup COMMAND classic_blowup_${classic})
    set_tests_properties(classics.${classic}.blowup PROPERTIES LABELS classics TIMEOUT 120)
  endif()
endforeach()
