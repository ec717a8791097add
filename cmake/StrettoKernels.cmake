# Files with CUDA kernels, each compiled by one command: CMake's own CUDA language would have to be
# there for whoever links the library, too.
include_guard()

set(STRETTO_CUDA_ARCHITECTURES 80 90 CACHE STRING
  "Architectures to compile kernels for, ascending; later ones are served by the first")

# stretto_kernels(variable source INCLUDES folders... DEPENDS headers...)
# Compiles the source, and sets the variable to the object's path.
function(stretto_kernels variable source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "INCLUDES;DEPENDS")
  list(GET STRETTO_CUDA_ARCHITECTURES 0 first)
  set(options -gencode arch=compute_${first},code=compute_${first})
  foreach(number IN LISTS STRETTO_CUDA_ARCHITECTURES)
    list(APPEND options -gencode arch=compute_${number},code=sm_${number})
  endforeach()
  if(STRETTO_WARNINGS_AS_ERRORS)
    list(APPEND options -Werror all-warnings)
  endif()
  foreach(folder IN LISTS arg_INCLUDES)
    list(APPEND options "-I${folder}")
  endforeach()
  cmake_path(GET source STEM stem)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${stem}.o")
  add_custom_command(OUTPUT "${object}"
    COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" -std=c++20 -O3 ${options}
      -Xcompiler -fPIC -c "${CMAKE_CURRENT_SOURCE_DIR}/${source}" -o "${object}"
    DEPENDS "${source}" ${arg_DEPENDS}
    COMMENT "Building CUDA object ${stem}.o" VERBATIM)
  set(${variable} "${object}" PARENT_SCOPE)
endfunction()
