if(NOT TARGET hmalloc_pdes_app)
  return()
endif()

add_pdes_test(models_test models_test.cc ${PROJECT_SOURCE_DIR}/pdes/models/phold_options.cc
  ${PROJECT_SOURCE_DIR}/pdes/models/phold_variants.cc)
target_link_libraries(pdes_models_test PRIVATE hmalloc_pdes_app)
pdes_later(models_test pdes_models_test)

# The programs: one answer for all options of the engine.  With sanitizers there are no ranks, and nothing is installed.
set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
if(EXISTS ${python})
  set(which)
  if(HM_SANITIZE)
    set(which -k "not ranks and not template")
  endif()
  add_test(NAME pdes.models COMMAND ${CMAKE_COMMAND} -E env HMALLOC_BUILD=${CMAKE_BINARY_DIR}
    ${python} -B -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/test_models.py ${which})
  set_tests_properties(pdes.models PROPERTIES LABELS pdes TIMEOUT 600)
  pdes_later(models)
endif()
