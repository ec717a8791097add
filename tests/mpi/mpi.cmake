set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI REQUIRED COMPONENTS CXX)

# The programs that mpirun starts, and the test that starts mpirun.
set(STRETTO_MPIRUN "${MPIEXEC_EXECUTABLE}")
execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE stretto_mpi_version
  ERROR_QUIET)
if(stretto_mpi_version MATCHES "Open MPI|OpenRTE")
  # More processes than cores, each with several threads; and containers, where everyone is root.
  string(APPEND STRETTO_MPIRUN " --oversubscribe --bind-to none --allow-run-as-root")
endif()
set(STRETTO_MPIRUN_ON "")
if(stretto_mpi_version MATCHES "Open MPI|OpenRTE")
  # That goes on with the other processes when one has died.
  set(STRETTO_MPIRUN_ON "${STRETTO_MPIRUN} --enable-recovery ${MPIEXEC_NUMPROC_FLAG}")
endif()
string(APPEND STRETTO_MPIRUN " ${MPIEXEC_NUMPROC_FLAG}")

foreach(program ranks ends)
  add_executable(test_mpi_${program} mpi/program/${program}.cpp)
  target_include_directories(test_mpi_${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(test_mpi_${program}
    PRIVATE stretto::stretto stretto_executor_mpi MPI::MPI_CXX)
  set_target_properties(test_mpi_${program} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/bin")
endforeach()
