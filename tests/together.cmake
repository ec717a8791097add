# stretto_write_together(out files...): writes a file that includes these, each in a namespace, for a
# compiler to read at once. Headers come once and first, so that a file's own directives add nothing
# to its own.
function(stretto_write_together out)
  set(headers)
  set(bodies)
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" included REGEX "^#include ")
    list(APPEND headers ${included})
    cmake_path(GET source STEM LAST_ONLY stem)
    string(MAKE_C_IDENTIFIER "${stem}" stem)
    string(APPEND bodies "namespace ${stem} {\n#include \"${source}\"\n}\n")
  endforeach()
  list(REMOVE_DUPLICATES headers)
  list(JOIN headers "\n" headers)
  file(CONFIGURE OUTPUT "${out}" CONTENT "${headers}\n${bodies}" @ONLY)
endfunction()
