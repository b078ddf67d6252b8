# Ranks over MPI, as processes that mpirun starts.
if(HM_MPI AND TARGET hmalloc_pdes_app AND EXISTS ${python})
  add_executable(pdes_mpi_ranks mpi_ranks.cc)
  target_link_libraries(pdes_mpi_ranks PRIVATE hmalloc_pdes_mpi)
  add_executable(pdes_mpi_program app_program.cc)
  target_link_libraries(pdes_mpi_program PRIVATE hmalloc_pdes_app hmalloc_pdes_mpi)
  add_pdes_pytest(mpi mpi_test.py pdes_mpi_ranks pdes_mpi_program)
  add_pdes_pytest(slurm slurm_test.py)
endif()
