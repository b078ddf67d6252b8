if(HM_METIS)
  add_pdes_test(metis metis_test.cc)
  target_link_libraries(pdes_metis PRIVATE hmalloc_pdes_metis)
endif()
# Loaded, where a library goes to other machines; a METIS with indices of 64 bits is put in its place.
add_pdes_test(loaded_metis loaded_metis_test.cc $<$<BOOL:${HM_METIS}>:metis_test.cc>
  ${PROJECT_SOURCE_DIR}/pdes/metis/loaded.cc)
target_link_libraries(pdes_loaded_metis PRIVATE ${CMAKE_DL_LIBS})
add_library(pdes_wide_metis MODULE wide_metis.c)
target_compile_definitions(pdes_loaded_metis PRIVATE WIDE_METIS="$<TARGET_FILE:pdes_wide_metis>")
add_dependencies(pdes_loaded_metis pdes_wide_metis)
add_pdes_test(without_metis without_metis_test.cc ${PROJECT_SOURCE_DIR}/pdes/metis/none.cc)
