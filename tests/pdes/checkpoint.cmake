add_pdes_test(checkpoint checkpoint_test.cc)

# An LP class that cannot be saved does not compile, with one sentence that says what to do.
set(compile ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -I ${PROJECT_SOURCE_DIR}/include)
add_test(NAME pdes.unsavable_lp COMMAND ${compile} ${CMAKE_CURRENT_SOURCE_DIR}/unsavable_lp.cc)
set_tests_properties(pdes.unsavable_lp PROPERTIES LABELS pdes
  PASS_REGULAR_EXPRESSION "this LP class is not trivially copyable: give it template <class A> void serialize")
add_test(NAME pdes.savable_lp COMMAND ${compile} -DSAVABLE ${CMAKE_CURRENT_SOURCE_DIR}/unsavable_lp.cc)
set_tests_properties(pdes.savable_lp PROPERTIES LABELS pdes)

# Nor does an event that is more than its bytes, with that sentence alone.
add_test(NAME pdes.unsendable_event COMMAND ${compile} ${CMAKE_CURRENT_SOURCE_DIR}/unsendable_event.cc)
set_tests_properties(pdes.unsendable_event PROPERTIES LABELS pdes
  PASS_REGULAR_EXPRESSION "error: [^\n]*this event type is not trivially copyable: events are copied as bytes, so give it numbers"
  FAIL_REGULAR_EXPRESSION "error:.*error:")
add_test(NAME pdes.sendable_event COMMAND ${compile} -DSENDABLE ${CMAKE_CURRENT_SOURCE_DIR}/unsendable_event.cc)
set_tests_properties(pdes.sendable_event PROPERTIES LABELS pdes)
