# A METIS with indices of 64 bits is put in the place of the machine's.
add_pdes_test(metis metis_test.cc loaded_metis_test.cc)
add_library(pdes_wide_metis MODULE wide_metis.c)
target_compile_definitions(pdes_metis PRIVATE WIDE_METIS="$<TARGET_FILE:pdes_wide_metis>")
add_dependencies(pdes_metis pdes_wide_metis)
