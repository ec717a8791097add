# Warnings for our own code, in every target of this project.

add_compile_options(
  -Wall        # what is nearly always a mistake
  -Wextra      # and what often is: unused parameters, missing initialisers, mixed signs
  -Wpedantic   # nothing beyond the standard: the headers go through three compilers
  -Wconversion # a narrowing that nobody wrote down; indices and bytes are what we compute with
  # A name that hides another is a name that gets mistaken for it; not where the two are in the
  # same unit only because files are compiled together.
  $<$<NOT:$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wshadow>)

# gcc 12 sees overlapping copies in std::string's own code at -O3, where there are none (bug 105651).
add_compile_options(
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>")

# clang sees libstdc++'s own std::stable_sort use what is deprecated.
add_compile_options("$<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>")

# doctest's macros use __COUNTER__, which clang 22 says is of the next C.
add_compile_options(
  "$<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,22>>:-Wno-c2y-extensions>")

if(STRETTO_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
