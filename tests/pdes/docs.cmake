# What the documentation shows is run: the tutorial, from an installed hmalloc; its table of options; the window model.
set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
if(EXISTS ${python} AND NOT HM_SANITIZE)
  add_test(NAME pdes.docs COMMAND ${CMAKE_COMMAND} -E env HMALLOC_BUILD=${CMAKE_BINARY_DIR}
    ${python} -B -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/test_tutorial.py)
  set_tests_properties(pdes.docs PROPERTIES LABELS pdes TIMEOUT 600)
  pdes_later(docs)
endif()
