# cmake -Dsource=FILE -Dcompiler=NAME -Dmode=refused|accepted -P refused.cmake -- COMMAND...
# Runs COMMAND FILE and stops with an error unless the compiler answers as the mode demands.

set(command)
set(after FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(at RANGE ${last})
  if(after)
    list(APPEND command "${CMAKE_ARGV${at}}")
  elseif(CMAKE_ARGV${at} STREQUAL "--")
    set(after TRUE)
  endif()
endforeach()

# message(FATAL_ERROR) alone would fold the text at blanks.
function(complain text)
  message(NOTICE "${text}")
  message(FATAL_ERROR "${source}: not ${mode} as it should be")
endfunction()

file(STRINGS "${source}" lines REGEX "^// expected(-${compiler})?: ")
if(mode STREQUAL "refused" AND NOT lines)
  complain("${source} expects nothing: write `// expected: TEXT` lines")
endif()

execute_process(COMMAND ${command} "${source}"
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(mode STREQUAL "accepted")
  if(NOT status EQUAL 0)
    complain("${source} must compile with ${compiler}:\n${output}")
  endif()
  return()
endif()

if(status EQUAL 0)
  complain("${source} compiled, and must not, with ${compiler}")
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^// expected[^:]*: " "" text "${line}")
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    complain(
      "what ${compiler} says of ${source} lacks the expected text\n  ${text}\nand is\n${output}")
  endif()
endforeach()
