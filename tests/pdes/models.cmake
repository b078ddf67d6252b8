if(NOT TARGET hmalloc_pdes_app)
  return()
endif()

add_pdes_test(models_test models_test.cc ${PROJECT_SOURCE_DIR}/pdes/models/phold_options.cc
  ${PROJECT_SOURCE_DIR}/pdes/models/phold_variants.cc)
target_link_libraries(pdes_models_test PRIVATE hmalloc_pdes_app)
pdes_later(models_test pdes_models_test)

# The programs: one answer for all options of the engine.
add_pdes_pytest(models test_models.py)
