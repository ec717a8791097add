# Compiling is passing. Not linked to stretto::stretto, which would raise the limits: what these
# files prove must fit what every compiler grants by default.

file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")

# And every header at once, for the compilers that do not build the project.
set(everything "${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp")
list(TRANSFORM stretto_headers REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE includes)
list(JOIN includes "\n" includes)
file(CONFIGURE OUTPUT "${everything}" CONTENT "${includes}\n" @ONLY)
list(APPEND sources "${everything}")

foreach(source IN LISTS sources)
  cmake_path(GET source STEM stem)
  foreach(compiler IN LISTS stretto_compilers)
    set(name static/${stem}/${compiler})
    add_test(NAME ${name} COMMAND ${stretto_compiler_${compiler}} "${source}")
    set_tests_properties(${name} PROPERTIES LABELS "static;${compiler}" TIMEOUT 300)
  endforeach()
endforeach()

# What proofs cost is gated by counts, which are the same on every machine. Only clang has a limit
# that counts finely enough.
if(STRETTO_CLANG)
  add_test(NAME static/constexpr_steps
    COMMAND bash "${PROJECT_SOURCE_DIR}/bench/compile/check_steps" "${STRETTO_CLANG}")
  set_tests_properties(static/constexpr_steps PROPERTIES
    LABELS "static;clang" TIMEOUT 600 SKIP_RETURN_CODE 77)
endif()
