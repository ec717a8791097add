# Compiling is passing. Not linked to stretto::stretto, which would raise the limits: what these
# files prove must fit what every compiler grants by default.

file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")

# And every header at once, for the compilers that do not build the project.
set(everything "${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp")
list(TRANSFORM stretto_headers REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE includes)
list(JOIN includes "\n" includes)
file(CONFIGURE OUTPUT "${everything}" CONTENT "${includes}\n" @ONLY)
list(APPEND sources "${everything}")

# What proofs cost is gated by counts, which are the same on every machine. Only clang has a limit
# that counts finely enough, each version in its own way: a pipeline's costliest constant may take a
# tenth more steps than recorded. Run record_steps where it takes more, or fewer, for a reason.
set(records "${CMAKE_CURRENT_LIST_DIR}/steps.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${records}")
set(counts FALSE)
if(STRETTO_CLANG)
  execute_process(COMMAND "${STRETTO_CLANG}" --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "clang version 19\\.")
    set(counts TRUE)
    file(STRINGS "${records}" counted REGEX "^[^#]")
  else()
    message(STATUS "stretto: no clang 19; what proofs cost is not compared")
  endif()
endif()

# stretto_static_test(name compiler command...)
function(stretto_static_test name compiler)
  add_test(NAME static/${name}/${compiler} COMMAND ${ARGN})
  set_tests_properties(static/${name}/${compiler} PROPERTIES
    LABELS "static;${compiler}" TIMEOUT 300)
endfunction()

foreach(source IN LISTS sources)
  cmake_path(GET source STEM stem)
  foreach(compiler IN LISTS stretto_compilers)
    set(limit)
    if(compiler STREQUAL "nvcc")
      continue()
    elseif(compiler STREQUAL "clang" AND counts AND stem MATCHES "^pipeline_(.+)")
      set(record ${counted})
      list(FILTER record INCLUDE REGEX "^${CMAKE_MATCH_1} ")
      if(NOT record MATCHES " ([0-9]+)$")
        message(FATAL_ERROR "${stem} is not recorded in ${records}: run record_steps")
      endif()
      math(EXPR most "${CMAKE_MATCH_1} + ${CMAKE_MATCH_1} / 10")
      math(EXPR too_few "${CMAKE_MATCH_1} / 2")
      set(few "${source}")
      set(limit -fconstexpr-steps=${most})
    endif()
    stretto_static_test(${stem} ${compiler} ${stretto_compiler_${compiler}} ${limit} "${source}")
  endforeach()
endforeach()

# nvcc takes long to read headers, so it reads many files at once; most of them with its front end
# alone, as what the host's compiler behind it makes of proofs need not be seen of every one.
if(STRETTO_NVCC)
  function(stretto_static_together name files)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/static_${name}.cpp")
    stretto_write_together("${file}" ${files})
    stretto_static_test(${name} nvcc ${ARGN} "${file}")
  endfunction()
  set(whole "${CMAKE_CURRENT_LIST_DIR}/pipeline_small.cpp" "${everything}")
  stretto_static_together(whole "${whole}" ${stretto_compiler_nvcc})
  list(TRANSFORM stretto_compiler_nvcc REPLACE "^-c$" "-ptx" OUTPUT_VARIABLE front_end)
  list(REMOVE_ITEM sources ${whole})
  list(LENGTH sources half)
  math(EXPR half "${half} / 2")
  list(SUBLIST sources 0 ${half} files)
  stretto_static_together(first_half "${files}" ${front_end})
  list(SUBLIST sources ${half} -1 files)
  stretto_static_together(second_half "${files}" ${front_end})
endif()

# Or the limit does nothing here, and the tests above compare nothing.
if(counts)
  add_test(NAME static/too_few_steps COMMAND ${stretto_compiler_clang}
    -fconstexpr-steps=${too_few} "${few}")
  set_tests_properties(static/too_few_steps PROPERTIES LABELS "static;clang" TIMEOUT 300
    PASS_REGULAR_EXPRESSION "hit maximum step limit")
endif()

# Under its sanitizer g++ holds that a constant's address might be null, and what asks is no constant.
if(STRETTO_GNU)
  foreach(source IN ITEMS "${CMAKE_CURRENT_LIST_DIR}/pipeline_small.cpp"
      "${PROJECT_SOURCE_DIR}/examples/10_own_stream_type.cpp")
    cmake_path(GET source STEM stem)
    add_test(NAME static/${stem}_sanitized COMMAND ${stretto_compiler_gnu} -fsanitize=undefined
      "-I${PROJECT_SOURCE_DIR}/executor/include" "${source}")
    set_tests_properties(static/${stem}_sanitized PROPERTIES LABELS "static;gnu" TIMEOUT 300)
  endforeach()
endif()
