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

foreach(source IN LISTS sources)
  cmake_path(GET source STEM stem)
  foreach(compiler IN LISTS stretto_compilers)
    set(name static/${stem}/${compiler})
    set(command ${stretto_compiler_${compiler}} "${source}")
    # What nvcc's own front end makes of proofs; what the host's compiler behind it makes of the same
    # need not be seen of every one.
    if(compiler STREQUAL "nvcc" AND NOT stem MATCHES "^(all_headers|pipeline_small)$")
      list(TRANSFORM command REPLACE "^-c$" "-ptx")
    endif()
    if(compiler STREQUAL "clang" AND counts AND stem MATCHES "^pipeline_(.+)")
      set(record ${counted})
      list(FILTER record INCLUDE REGEX "^${CMAKE_MATCH_1} ")
      if(record MATCHES " ([0-9]+)$")
        math(EXPR most "${CMAKE_MATCH_1} + ${CMAKE_MATCH_1} / 10")
        math(EXPR too_few "${CMAKE_MATCH_1} / 2")
        set(few ${stem})
        list(APPEND command -fconstexpr-steps=${most})
      else()
        set(command sh -c "echo ${stem} is not recorded in ${records} && false")
      endif()
    endif()
    add_test(NAME ${name} COMMAND ${command})
    set_tests_properties(${name} PROPERTIES LABELS "static;${compiler}" TIMEOUT 300)
  endforeach()
endforeach()

# Or the limit does nothing here, and the tests above compare nothing.
if(counts)
  add_test(NAME static/too_few_steps COMMAND ${stretto_compiler_clang}
    -fconstexpr-steps=${too_few} "${CMAKE_CURRENT_LIST_DIR}/${few}.cpp")
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
