# Orders frozen by the tool, given to every compiler: what it prints must be provable as it stands,
# and no longer when an entry is damaged.

set(script "${CMAKE_CURRENT_LIST_DIR}/freeze.cmake")
set(headers "${CMAKE_CURRENT_BINARY_DIR}/frozen")

# One process: the headers are written, then copies of some spoilt.
add_test(NAME frozen/headers COMMAND "${CMAKE_COMMAND}"
  "-Dtool=$<TARGET_FILE:stretto_tool>" "-Dout=${headers}" -P "${script}")
set_tests_properties(frozen/headers PROPERTIES
  LABELS static TIMEOUT 120 FIXTURES_SETUP frozen_headers)

foreach(compiler IN LISTS stretto_compilers)
  foreach(case IN ITEMS "proof|accepted" "machine|accepted" "damaged|refused"
      "damaged.twin|accepted" "limit|refused")
    string(REPLACE "|" ";" case "${case}")
    list(POP_FRONT case stem mode)
    add_test(NAME frozen/${stem}/${compiler} COMMAND "${CMAKE_COMMAND}"
      "-Dsource=${CMAKE_CURRENT_LIST_DIR}/${stem}.cpp" -Dcompiler=${compiler} -Dmode=${mode}
      -P "${CMAKE_CURRENT_LIST_DIR}/../fail/refused.cmake"
      -- ${stretto_compiler_${compiler}} "-I${headers}")
    set_tests_properties(frozen/${stem}/${compiler} PROPERTIES
      LABELS "static;${compiler}" TIMEOUT 600 FIXTURES_REQUIRED frozen_headers)
  endforeach()
endforeach()
