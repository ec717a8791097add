# stretto::stretto: the headers, C++20, and compiler limits that let large shapes be proven.

file(GLOB_RECURSE stretto_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/stretto/*.hpp")

add_library(stretto INTERFACE)
add_library(stretto::stretto ALIAS stretto)
target_sources(stretto INTERFACE
  FILE_SET HEADERS
  BASE_DIRS "${PROJECT_SOURCE_DIR}/include"
  FILES ${stretto_headers})
target_compile_features(stretto INTERFACE cxx_std_20)

# How much one constant may cost. Each compiler counts something else: gcc operations and, apart
# from them, the iterations of one loop; clang steps; nvcc's front end the cost of a call. The
# defaults are enough for 8 ranks, 64 micro-batches and 2 chunks; these are for larger plans. The
# generator expressions are kept by install(EXPORT) and decided by whoever links the target.
set(stretto_limit 1000000000)
target_compile_options(stretto INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fconstexpr-ops-limit=${stretto_limit}>"
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fconstexpr-loop-limit=${stretto_limit}>"
  "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-fconstexpr-steps=${stretto_limit}>"
  "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:SHELL:-Xcudafe --max_cost_constexpr_call=${stretto_limit}>"
  # nvcc compiles the host side once more, with the compiler of the C++ files as a rule.
  "$<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,$<CXX_COMPILER_ID:GNU>>:SHELL:-Xcompiler -fconstexpr-ops-limit=${stretto_limit},-fconstexpr-loop-limit=${stretto_limit}>"
  "$<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,$<CXX_COMPILER_ID:Clang>>:SHELL:-Xcompiler -fconstexpr-steps=${stretto_limit}>")

# stretto_as_library(target...): as whoever links the executor may need it: also into a shared library
# or a plug-in; with its names, whatever a project around it hides; the version in its file's name, of
# which before 1.0 a minor one may break what the one before had; and, shared, with its like beside it.
function(stretto_as_library)
  foreach(target IN LISTS ARGN)
    set_target_properties(${target} PROPERTIES
      CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
    if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "OBJECT_LIBRARY")
      set_target_properties(${target} PROPERTIES VERSION "${PROJECT_VERSION}"
        SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
      if(NOT DEFINED CMAKE_INSTALL_RPATH)
        set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
      endif()
    endif()
  endforeach()
endfunction()

# stretto_verify_headers(target): every public header of the target compiles alone, warning-free:
# one generated unit each.
function(stretto_verify_headers target)
  set(headers)
  get_target_property(sets ${target} INTERFACE_HEADER_SETS)
  foreach(set IN LISTS sets)
    get_target_property(files ${target} HEADER_SET_${set})
    list(APPEND headers ${files})
  endforeach()
  set(units)
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${header}")
    string(MAKE_C_IDENTIFIER "${name}" unit)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/headers/${unit}.cpp")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"${header}\"\n")
    list(APPEND units "${unit}")
  endforeach()
  add_library(${target}_headers_alone OBJECT ${units})
  target_link_libraries(${target}_headers_alone PRIVATE ${target})
  set_target_properties(${target}_headers_alone PROPERTIES UNITY_BUILD OFF)
  target_compile_options(${target}_headers_alone PRIVATE -O0) # nothing of it ever runs
endfunction()
