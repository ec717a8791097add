# The compilers that must accept what we claim they accept: the one that builds the project, and
# whichever of the others are installed. A test that needs a compiler calls it by its command line.
#   stretto_compilers          names: gnu, clang, nvcc
#   stretto_compiler_<name>    command that compiles one file to nothing, less the file

set(stretto_flags -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/tests)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(STRETTO_GNU "${CMAKE_CXX_COMPILER}" CACHE FILEPATH "g++ for compile-only tests")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(STRETTO_CLANG "${CMAKE_CXX_COMPILER}" CACHE FILEPATH "clang++ for compile-only tests")
endif()
find_program(STRETTO_GNU NAMES g++ g++-12 g++-13 g++-14 DOC "g++ for compile-only tests")
# Debian 12 and Ubuntu 22.04 have older ones under the plain name.
find_program(STRETTO_CLANG NAMES clang++-19 clang++-20 clang++-21 DOC
  "clang++ for compile-only tests")
find_program(STRETTO_NVCC NAMES nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
  PATH_SUFFIXES bin DOC "nvcc for compile-only tests")

set(stretto_compilers)
if(STRETTO_GNU)
  list(APPEND stretto_compilers gnu)
  # Without the echo of source lines, in which an expected message might stand anyway.
  set(stretto_compiler_gnu "${STRETTO_GNU}" ${stretto_flags} -Werror -fsyntax-only
    -fno-diagnostics-show-caret)
endif()
if(STRETTO_CLANG)
  list(APPEND stretto_compilers clang)
  set(stretto_compiler_clang "${STRETTO_CLANG}" ${stretto_flags} -Werror -fsyntax-only
    -fno-caret-diagnostics -ferror-limit=0)
endif()
if(STRETTO_NVCC)
  list(APPEND stretto_compilers nvcc)
  # As CUDA, or nvcc would hand the file to the host compiler unread: it reads for the device, then for
  # the host, and the host's compiler, which proves what `valid` asks, reads what that leaves (and warns
  # of the line directives that nvcc writes, so it gets no -Wpedantic).
  set(stretto_compiler_nvcc "${STRETTO_NVCC}" -std=c++20 -x cu -c -o /dev/null -Werror all-warnings
    -Xcompiler=-fno-diagnostics-show-caret
    -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/tests)
endif()
foreach(compiler IN ITEMS gnu clang nvcc)
  if(NOT compiler IN_LIST stretto_compilers)
    message(STATUS "stretto: no ${compiler}; its compile-only tests are left out")
  endif()
endforeach()
