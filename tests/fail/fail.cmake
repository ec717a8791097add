# NAME.cpp must be refused with every text of its `// expected: TEXT` lines in what the compiler
# says (`// expected-clang: TEXT` for one compiler); NAME.twin.cpp, the same but for the fault, must
# be accepted. A file without a twin proves nothing: it might fail for any reason. A compiler reads
# all of them at once, which spares it the headers.

set(script "${CMAKE_CURRENT_LIST_DIR}/refused.cmake")

# stretto_compile_check(test compiler mode source files...): the script's run as a test; the files
# are those that the source includes, or itself.
function(stretto_compile_check test compiler mode source)
  add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}"
    "-Dsource=${source}" "-Dof=${ARGN}" -Dcompiler=${compiler} -Dmode=${mode}
    -P "${script}" -- ${stretto_compiler_${compiler}})
  set_tests_properties(${test} PROPERTIES LABELS "fail;${compiler}" TIMEOUT 300)
endfunction()

# stretto_compile_check_all(test compiler mode files...): of one file that includes these.
function(stretto_compile_check_all test compiler mode)
  string(REPLACE "/" "_" file "${test}")
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${file}.cpp")
  stretto_write_together("${file}" ${ARGN})
  stretto_compile_check(${test} ${compiler} ${mode} "${file}" ${ARGN})
endfunction()

file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
set(twins)
foreach(source IN LISTS sources)
  if(source MATCHES "\\.twin\\.cpp$")
    string(REGEX REPLACE "\\.twin\\.cpp$" ".cpp" original "${source}")
    if(NOT EXISTS "${original}")
      message(FATAL_ERROR "${source} is the twin of no file")
    endif()
    list(APPEND twins "${source}")
    list(REMOVE_ITEM sources "${source}")
    continue()
  endif()
  string(REGEX REPLACE "\\.cpp$" ".twin.cpp" twin "${source}")
  if(NOT EXISTS "${twin}")
    message(FATAL_ERROR "${source} has no twin: ${twin} must be the same without the fault")
  endif()
endforeach()
foreach(compiler IN LISTS stretto_compilers)
  # nvcc's first part stops the second, which alone would speak of most of the files; where the first
  # one speaks, it has words of its own.
  set(common)
  set(special)
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" words REGEX "^// expected-${compiler}: ")
    if(words)
      list(APPEND special "${source}")
    else()
      list(APPEND common "${source}")
    endif()
  endforeach()
  stretto_compile_check_all(fail/refused/${compiler} ${compiler} refused ${common})
  if(special)
    stretto_compile_check_all(fail/refused_specially/${compiler} ${compiler} refused ${special})
  endif()
  stretto_compile_check_all(fail/twins/${compiler} ${compiler} accepted ${twins})
endforeach()

# What specialises a template of the library's stands in no namespace, and so is read by itself; so is that
# at which nvcc stops before it reads function bodies.
file(GLOB alone CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/alone/*.cpp")
list(FILTER alone EXCLUDE REGEX "\\.twin\\.cpp$")
foreach(source IN LISTS alone)
  get_filename_component(name "${source}" NAME_WE)
  string(REGEX REPLACE "\\.cpp$" ".twin.cpp" twin "${source}")
  foreach(compiler IN LISTS stretto_compilers)
    stretto_compile_check(fail/${name}/${compiler} ${compiler} refused "${source}" "${source}")
    stretto_compile_check(fail/${name}.twin/${compiler} ${compiler} accepted "${twin}" "${twin}")
  endforeach()
endforeach()

# The harness itself: what must not pass, fails, and for the reason that it should.
function(stretto_harness_check stem mode complaint)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_LIST_DIR}/harness/")
  list(TRANSFORM ARGN APPEND .cpp)
  foreach(compiler IN LISTS stretto_compilers)
    set(test fail/harness/${stem}/${compiler})
    stretto_compile_check(${test} ${compiler} ${mode} ${ARGN})
    # ctest looks at this text instead of the exit status; the script's every complaint is fatal.
    set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "${complaint}")
  endforeach()
endfunction()
stretto_harness_check(compiles refused "compiled, and must not" compiles compiles)
stretto_harness_check(other_message refused "lacks the expected text" other_message other_message)
stretto_harness_check(other_file refused "says of .*/other_message.cpp lacks the expected text"
  one_message one_message other_message)
stretto_harness_check(same_message refused "one_message.cpp expects nothing that is said of it alone"
  one_message one_message one_message)
stretto_harness_check(no_expectation refused "expects nothing" no_expectation no_expectation)
stretto_harness_check(broken_twin accepted "must compile" broken_twin broken_twin)

# An older language is named, before whatever it does not understand.
foreach(compiler IN LISTS stretto_compilers)
  list(TRANSFORM stretto_compiler_${compiler} REPLACE "^-std=c\\+\\+20$" "-std=c++17"
    OUTPUT_VARIABLE older)
  add_test(NAME fail/language/${compiler}
    COMMAND ${older} "${PROJECT_SOURCE_DIR}/tests/static/pipeline_small.cpp")
  set_tests_properties(fail/language/${compiler} PROPERTIES LABELS "fail;${compiler}" TIMEOUT 300
    PASS_REGULAR_EXPRESSION "stretto needs C\\+\\+20")
endforeach()
