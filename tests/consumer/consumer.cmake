# Projects of their own that use this one: from its installed package, and from its source tree.

set(prefix "${CMAKE_CURRENT_BINARY_DIR}/consumer/prefix")
set(with_cuda $<BOOL:$<TARGET_EXISTS:stretto_executor_cuda>>)
set(with_executor $<BOOL:$<TARGET_EXISTS:stretto_executor>>)
set(with_mpi $<BOOL:$<TARGET_EXISTS:stretto_executor_mpi>>)
set(with_nccl $<BOOL:$<TARGET_EXISTS:stretto_executor_nccl>>)

# stretto_consumer(name options...)
function(stretto_consumer name)
  add_test(NAME consumer/${name} COMMAND "${CMAKE_CTEST_COMMAND}"
    --build-and-test "${CMAKE_CURRENT_LIST_DIR}/${name}"
    "${CMAKE_CURRENT_BINARY_DIR}/consumer/${name}"
    --build-generator "${CMAKE_GENERATOR}"
    --build-options "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 # what it costs to run is not asked here
    -DCMAKE_UNITY_BUILD=ON # the libraries' files, in the fewest units
    -DWITH_EXECUTOR=${with_executor} -DWITH_CUDA=${with_cuda} -DWITH_MPI=${with_mpi}
    -DWITH_NCCL=${with_nccl} ${ARGN}
    --test-command "${CMAKE_CTEST_COMMAND}" --output-on-failure --no-tests=error)
  set_tests_properties(consumer/${name} PROPERTIES LABELS consumer TIMEOUT 600
    COST 100)  # long, so first
endfunction()

if(STRETTO_INSTALL)
  add_test(NAME consumer/install COMMAND "${CMAKE_COMMAND}"
    --install "${PROJECT_BINARY_DIR}" --config $<CONFIG> --prefix "${prefix}")
  set_tests_properties(consumer/install PROPERTIES LABELS consumer FIXTURES_SETUP installed)
  set(with_nvcc)
  if(STRETTO_NVCC)
    set(with_nvcc "-DWITH_NVCC=${STRETTO_NVCC}")
  endif()
  stretto_consumer(find_package "-DCMAKE_PREFIX_PATH=${prefix}" ${with_nvcc})
  set_tests_properties(consumer/find_package PROPERTIES FIXTURES_REQUIRED installed)
  # A part alone is what its name says, and no other.
  set(part "${CMAKE_CURRENT_BINARY_DIR}/consumer/headers_alone")
  add_test(NAME consumer/component COMMAND sh -ec "
    rm -rf \"${part}\"
    \"${CMAKE_COMMAND}\" --install \"${PROJECT_BINARY_DIR}\" --prefix \"${part}\" \\
      --component stretto_headers
    test -f \"${part}/${CMAKE_INSTALL_INCLUDEDIR}/stretto/stretto.hpp\"
    test -f \"${part}/${CMAKE_INSTALL_LIBDIR}/cmake/stretto/strettoConfig.cmake\"
    test ! -e \"${part}/${CMAKE_INSTALL_INCLUDEDIR}/stretto/executor\"
    test ! -e \"${part}/${CMAKE_INSTALL_BINDIR}\"")
  set_tests_properties(consumer/component PROPERTIES LABELS consumer)
  find_program(STRETTO_PKG_CONFIG NAMES pkgconf pkg-config DOC "pkg-config for its test")
  if(STRETTO_PKG_CONFIG AND TARGET stretto_executor)
    set(program "${CMAKE_CURRENT_BINARY_DIR}/consumer/executor_by_pkg_config")
    set(by_mpi)
    if(TARGET stretto_executor_mpi)
      set(by_mpi "
        flags=$(\"${STRETTO_PKG_CONFIG}\" --cflags --libs stretto-executor-mpi)
        echo \"$flags\"
        \"${MPI_CXX_COMPILER}\" -std=c++20 \"${CMAKE_CURRENT_LIST_DIR}/executor_mpi.cpp\" \\
          -o \"${program}_and_mpi\" $flags")
    endif()
    add_test(NAME consumer/pkg_config COMMAND sh -ec "
      flags=$(\"${STRETTO_PKG_CONFIG}\" --cflags --libs stretto-executor)
      echo \"$flags\"
      \"${CMAKE_CXX_COMPILER}\" -std=c++20 \"${CMAKE_CURRENT_LIST_DIR}/executor.cpp\" -o \"${program}\" $flags
      \"${program}\"
      ${by_mpi}")
    set_tests_properties(consumer/pkg_config PROPERTIES LABELS consumer TIMEOUT 600
      FIXTURES_REQUIRED installed
      ENVIRONMENT "PKG_CONFIG_PATH=${prefix}/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  endif()
endif()
# Shared, in a project that hides what it does not export itself.
stretto_consumer(add_subdirectory "-DSTRETTO_SOURCE=${PROJECT_SOURCE_DIR}" -DBUILD_SHARED_LIBS=ON
  -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON)
