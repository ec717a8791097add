# NAME.cpp must be refused with every text of its `// expected: TEXT` lines in what the compiler
# says (`// expected-clang: TEXT` for one compiler); NAME.twin.cpp, the same but for the fault, must
# be accepted. A file without a twin proves nothing: it might fail for any reason. One compiler reads
# each twin by itself; the others read all of them in one file, which spares them the headers.

set(script "${CMAKE_CURRENT_LIST_DIR}/refused.cmake")

# stretto_compile_check(test compiler mode source): the script's run as a test.
function(stretto_compile_check test compiler mode source)
  add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}"
    "-Dsource=${source}" -Dcompiler=${compiler} -Dmode=${mode}
    -P "${script}" -- ${stretto_compiler_${compiler}})
  set_tests_properties(${test} PROPERTIES LABELS "fail;${compiler}" TIMEOUT 300)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
set(others ${stretto_compilers})
list(POP_FRONT others alone)
set(headers)
set(twins)
foreach(source IN LISTS sources)
  if(source MATCHES "\\.twin\\.cpp$")
    string(REGEX REPLACE "\\.twin\\.cpp$" ".cpp" original "${source}")
    if(NOT EXISTS "${original}")
      message(FATAL_ERROR "${source} is the twin of no file")
    endif()
    continue()
  endif()
  string(REGEX REPLACE "\\.cpp$" ".twin.cpp" twin "${source}")
  if(NOT EXISTS "${twin}")
    message(FATAL_ERROR "${source} has no twin: ${twin} must be the same without the fault")
  endif()
  cmake_path(GET source STEM LAST_ONLY stem)
  foreach(compiler IN LISTS stretto_compilers)
    stretto_compile_check(fail/${stem}/${compiler} ${compiler} refused "${source}")
    if(compiler STREQUAL alone)
      stretto_compile_check(fail/${stem}.twin/${compiler} ${compiler} accepted "${twin}")
    endif()
  endforeach()
  # Headers come once and first, so that each twin's own directives add nothing to its namespace.
  file(STRINGS "${twin}" included REGEX "^#include ")
  list(APPEND headers ${included})
  string(APPEND twins "namespace ${stem} {\n#include \"${twin}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES headers)
list(JOIN headers "\n" headers)
set(all_twins "${CMAKE_CURRENT_BINARY_DIR}/fail_twins.cpp")
file(CONFIGURE OUTPUT "${all_twins}" CONTENT "${headers}\n${twins}" @ONLY)
foreach(compiler IN LISTS others)
  stretto_compile_check(fail/twins/${compiler} ${compiler} accepted "${all_twins}")
endforeach()

# The harness itself: what must not pass, fails, and for the reason that it should.
foreach(compiler IN LISTS stretto_compilers)
  foreach(case IN ITEMS
      "compiles|refused|compiled, and must not"
      "other_message|refused|lacks the expected text"
      "no_expectation|refused|expects nothing"
      "broken_twin|accepted|must compile")
    string(REPLACE "|" ";" case "${case}")
    list(POP_FRONT case stem mode complaint)
    set(test fail/harness/${stem}/${compiler})
    stretto_compile_check(${test} ${compiler} ${mode} "${CMAKE_CURRENT_LIST_DIR}/harness/${stem}.cpp")
    # ctest looks at this text instead of the exit status; the script's every complaint is fatal.
    set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "${complaint}")
  endforeach()
endforeach()
