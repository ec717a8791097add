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
# tenth more steps than recorded, and no more than clang allows by itself. Run record_steps where it
# takes more, or fewer, for a reason.
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

# stretto_static_parts(name compiler count files command...): the files in so many parts, each read at
# once: limits are those of one constant all the same, and headers are read a few times, not thirty.
function(stretto_static_parts name compiler count files)
  list(LENGTH files all)
  foreach(part RANGE 1 ${count})
    math(EXPR from "${all} * (${part} - 1) / ${count}")
    math(EXPR size "${all} * ${part} / ${count} - ${from}")
    list(SUBLIST files ${from} ${size} together)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/static_${name}_${part}_${compiler}.cpp")
    stretto_write_together("${file}" ${together})
    stretto_static_test(${name}_${part} ${compiler} ${ARGN} "${file}")
  endforeach()
endfunction()

if(STRETTO_CLANG) # each by itself, under a limit of its own
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    set(limit)
    if(counts AND stem MATCHES "^pipeline_(.+)")
      set(record ${counted})
      list(FILTER record INCLUDE REGEX "^${CMAKE_MATCH_1} ")
      if(NOT record MATCHES " ([0-9]+)$")
        message(FATAL_ERROR "${stem} is not recorded in ${records}: run record_steps")
      endif()
      math(EXPR most "${CMAKE_MATCH_1} + ${CMAKE_MATCH_1} / 10")
      if(most GREATER 1048576)
        set(most 1048576)  # clang's default
      endif()
      math(EXPR too_few "${CMAKE_MATCH_1} / 2")
      set(few "${source}")
      set(limit -fconstexpr-steps=${most})
    endif()
    stretto_static_test(${stem} clang ${stretto_compiler_clang} ${limit} "${source}")
  endforeach()
endif()
if(STRETTO_GNU)
  stretto_static_parts(part gnu 4 "${sources}" ${stretto_compiler_gnu})
endif()
if(STRETTO_NVCC)
  # Most with its front end alone: what the host's compiler behind it makes of proofs need not be seen
  # of every one.
  set(whole "${CMAKE_CURRENT_LIST_DIR}/pipeline_small.cpp" "${everything}")
  stretto_static_parts(whole nvcc 1 "${whole}" ${stretto_compiler_nvcc})
  list(REMOVE_ITEM sources ${whole})
  list(TRANSFORM stretto_compiler_nvcc REPLACE "^-c$" "-ptx" OUTPUT_VARIABLE front_end)
  stretto_static_parts(part nvcc 2 "${sources}" ${front_end})
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

# All headers where every name of std is known without std: none is taken for what it is there.
set(names "${CMAKE_CURRENT_BINARY_DIR}/names_of_std.cpp")
file(CONFIGURE OUTPUT "${names}" CONTENT
  "#include <bits/stdc++.h>\nusing namespace std;\n${includes}\n" @ONLY)
foreach(compiler IN ITEMS gnu clang)
  if(stretto_compiler_${compiler})
    stretto_static_test(names_of_std ${compiler} ${stretto_compiler_${compiler}} "${names}")
  endif()
endforeach()

# Only limits would end what is computed of a refused shape, so here there are none.
set(refused "${CMAKE_CURRENT_LIST_DIR}/refused_shapes.cpp")
if(STRETTO_GNU)
  stretto_static_test(refused_shapes_unlimited gnu ${stretto_compiler_gnu}
    -fconstexpr-ops-limit=9223372036854775807 -fconstexpr-loop-limit=2147483647 "${refused}")
endif()
if(STRETTO_CLANG)
  stretto_static_test(refused_shapes_unlimited clang ${stretto_compiler_clang}
    -fconstexpr-steps=2147483647 "${refused}")
endif()
