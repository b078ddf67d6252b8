# What model programs share: its parts, and a program that is made of them.
if(NOT TARGET hmalloc_pdes_app)
  return()
endif()

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
add_pdes_test(app app_test.cc)
target_link_libraries(pdes_app PRIVATE hmalloc_pdes_app CLI11::CLI11 nlohmann_json::nlohmann_json)
add_executable(pdes_app_program app_program.cc)
target_link_libraries(pdes_app_program PRIVATE hmalloc_pdes_app)
pdes_later(app pdes_app pdes_app_program)

# Not under sanitizers: they hold signals back, and bring a malloc of their own.
if(NOT HM_SANITIZE)
  add_pdes_pytest(app_program test_app.py)
endif()
