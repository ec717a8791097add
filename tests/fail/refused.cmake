# cmake -Dsource=FILE -Dof=FILES -Dcompiler=NAME -Dmode=refused|accepted -P refused.cmake -- COMMAND...
# Runs COMMAND FILE and stops with an error unless the compiler answers as the mode demands. FILES is
# FILE, or those that it includes: refused for every `// expected` line of each of them.

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
# What is said of one file must not pass for what should have been said of another.
set(all "\n")
foreach(file IN LISTS of)
  file(STRINGS "${file}" lines REGEX "^// expected(-${compiler})?: ")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^// expected[^:]*: " "" text "${line}")
    string(APPEND all "${text}\n")
  endforeach()
endforeach()
foreach(file IN LISTS of)
  file(STRINGS "${file}" lines REGEX "^// expected(-${compiler})?: ")
  set(own FALSE)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^// expected[^:]*: " "" text "${line}")
    string(FIND "${output}" "${text}" at)
    if(at EQUAL -1)
      complain(
        "what ${compiler} says of ${file} lacks the expected text\n  ${text}\nand is\n${output}")
    endif()
    string(FIND "${all}" "\n${text}\n" first)
    string(FIND "${all}" "\n${text}\n" last REVERSE)
    if(first EQUAL last)
      set(own TRUE)
    endif()
  endforeach()
  if(NOT own)
    complain("${file} expects nothing that is said of it alone: write `// expected: TEXT` lines")
  endif()
endforeach()
