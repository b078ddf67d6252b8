if(NOT TARGET hmalloc_pdes_app)
  return()
endif()

add_pdes_test(models_test models_test.cc ${PROJECT_SOURCE_DIR}/pdes/models/phold_options.cc
  ${PROJECT_SOURCE_DIR}/pdes/models/phold_variants.cc)
target_link_libraries(pdes_models_test PRIVATE hmalloc_pdes_app)
pdes_later(models_test pdes_models_test)

# The programs: one answer for all options of the engine.
add_pdes_pytest(models test_models.py)

# The library of models, against theory.
add_pdes_test(library library_test.cc library_arq_test.cc library_colonies_test.cc library_illness_test.cc library_network_test.cc
  library_queues_test.cc library_traffic_test.cc ${PROJECT_SOURCE_DIR}/pdes/models/graph.cc ${PROJECT_SOURCE_DIR}/pdes/models/number_file.cc)
pdes_later(library pdes_library)
