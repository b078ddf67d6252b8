add_pdes_test(wheel timing_wheel_test.cc key_sort_test.cc)
add_pdes_test(event_memory event_memory_test.cc)
add_pdes_test(simulation simulation_test.cc bad_input_test.cc)
add_pdes_test(determinism determinism_test.cc)
add_pdes_test(timer timer_test.cc)
add_pdes_test(end_after end_after_test.cc)
if(NOT HM_SANITIZE)  # it has an operator new of its own
  add_pdes_test(wheel_adjacent timing_wheel_adjacent_test.cc)
endif()
