# What both consumers build and run.
add_executable(headers "${CMAKE_CURRENT_LIST_DIR}/headers.cpp")
target_link_libraries(headers PRIVATE stretto::stretto)
add_test(NAME headers COMMAND headers)
if(WITH_EXECUTOR)
  add_executable(executor "${CMAKE_CURRENT_LIST_DIR}/executor.cpp")
  target_link_libraries(executor PRIVATE stretto::executor)
  add_test(NAME executor COMMAND executor)
  # What an interpreter loads has the library in it.
  add_library(plug_in MODULE "${CMAKE_CURRENT_LIST_DIR}/executor.cpp")
  target_link_libraries(plug_in PRIVATE stretto::executor)
endif()
if(WITH_CUDA)
  add_executable(executor_cuda "${CMAKE_CURRENT_LIST_DIR}/executor_cuda.cpp")
  target_link_libraries(executor_cuda PRIVATE stretto::executor_cuda)
  add_test(NAME executor_cuda COMMAND executor_cuda)
endif()
if(WITH_NVCC)
  # The same file through nvcc's front end, which has a limit of its own. Only compiled: any
  # architecture will do.
  set(CMAKE_CUDA_COMPILER "${WITH_NVCC}")
  set(CMAKE_CUDA_ARCHITECTURES 80)
  enable_language(CUDA)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/headers.cpp" headers.cu COPYONLY)
  add_library(headers_cuda OBJECT "${CMAKE_CURRENT_BINARY_DIR}/headers.cu")
  # CMake 3.25 does not know the C++20 option of the latest nvcc.
  target_compile_options(headers_cuda PRIVATE -std=c++20)
  target_link_libraries(headers_cuda PRIVATE stretto::stretto)
endif()
