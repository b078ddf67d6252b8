# Ranks over MPI, as processes that mpirun starts.
set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
if(HM_MPI AND EXISTS ${python})
  add_executable(pdes_mpi_ranks mpi_ranks.cc)
  target_link_libraries(pdes_mpi_ranks PRIVATE hmalloc_pdes_mpi)
  add_test(NAME pdes.mpi COMMAND ${CMAKE_COMMAND} -E env HMALLOC_BUILD=${CMAKE_BINARY_DIR}
    ${python} -B -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/mpi_test.py)
  set_tests_properties(pdes.mpi PROPERTIES LABELS pdes TIMEOUT 300)
  pdes_later(mpi pdes_mpi_ranks)
endif()
