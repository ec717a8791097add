# Each file of fuzz/ is a target for libFuzzer: what must hold of any bytes. Without STRETTO_FUZZ it
# is a test, whose program runs it on a few files and on what fixed seeds make of them.

add_custom_target(tests_fuzz)

# stretto_fuzz_target(name times [SEEDS folders...] [LIBS targets...]): with STRETTO_FUZZ the fuzzer
# fuzz_<name>; else the program test_fuzz_<name>, which makes so many inputs from the files in these
# folders and in fuzz/corpus/<name>.
function(stretto_fuzz_target name times)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SEEDS;LIBS")
  set(target test_fuzz_${name})
  if(STRETTO_FUZZ)
    set(target fuzz_${name})
  endif()
  add_executable(${target} fuzz/${name}.cpp)
  add_dependencies(tests_fuzz ${target})
  target_link_libraries(${target} PRIVATE stretto::stretto ${arg_LIBS})
  target_include_directories(${target} PRIVATE
    "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}")
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/bin")
  if(STRETTO_FUZZ)
    target_compile_options(${target} PRIVATE -O1)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_link_libraries(${target} PRIVATE stretto_fuzz_replay)
  target_compile_options(${target} PRIVATE -O0 ${STRETTO_SANITIZE_LESS})
  list(TRANSFORM arg_SEEDS PREPEND "tests/")
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
    list(APPEND arg_SEEDS tests/fuzz/corpus/${name})
  endif()
  stretto_file_test(fuzz ${name} ${target} ${times} ${arg_SEEDS})
endfunction()

if(NOT STRETTO_FUZZ)
  add_library(stretto_fuzz_replay OBJECT fuzz/support/replay.cpp)
  target_include_directories(stretto_fuzz_replay PRIVATE "${PROJECT_SOURCE_DIR}/tests")
endif()

stretto_fuzz_target(csv 5000 SEEDS tool/csv tool/csv_invalid)
stretto_fuzz_target(lists 400)
stretto_fuzz_target(plans 1000 LIBS stretto_test_schedules)
stretto_fuzz_target(schedules 3000 LIBS stretto_test_schedules)
if(TARGET stretto_executor)
  stretto_fuzz_target(executor_plans 1500 LIBS stretto_test_schedules stretto_executor)
endif()
if(TARGET stretto_tool)
  # All that reads the tool's files, but what opens them: each target has its own of that.
  stretto_fuzz_target(tool_costs 1000 LIBS stretto_tool_readers)
  stretto_fuzz_target(tool_machine 3000 LIBS stretto_tool_readers)
  stretto_fuzz_target(tool_trace 3000 LIBS stretto_tool_readers)
endif()
