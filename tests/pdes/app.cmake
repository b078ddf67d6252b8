# What model programs share: its parts, and a program that is made of them.
if(TARGET hmalloc_pdes_app)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
  add_pdes_test(app app_test.cc)
  target_link_libraries(pdes_app PRIVATE hmalloc_pdes_app CLI11::CLI11 nlohmann_json::nlohmann_json)
  add_executable(pdes_app_program app_program.cc)
  target_link_libraries(pdes_app_program PRIVATE hmalloc_pdes_app)
  pdes_later(app pdes_app pdes_app_program)
endif()

# Not under sanitizers: they hold signals back, and bring a malloc of their own.
set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
if(TARGET hmalloc_pdes_app AND EXISTS ${python} AND NOT HM_SANITIZE)
  add_test(NAME pdes.app_program COMMAND ${CMAKE_COMMAND} -E env HMALLOC_BUILD=${CMAKE_BINARY_DIR}
    ${python} -B -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/test_app.py)
  set_tests_properties(pdes.app_program PROPERTIES LABELS pdes TIMEOUT 300)
  pdes_later(app_program)
endif()
