# Target `reference`: all public declarations and their comments as pages, by Doxygen, where there is
# one. Not part of `all`. What a comment says of a parameter that there is not fails it.
find_package(Doxygen QUIET)
if(NOT DOXYGEN_FOUND)
  return()
endif()

set(DOXYGEN_PROJECT_BRIEF "${PROJECT_DESCRIPTION}")
set(DOXYGEN_FILE_PATTERNS *.hpp *.md)
set(DOXYGEN_USE_MDFILE_AS_MAINPAGE "${PROJECT_SOURCE_DIR}/docs/reference.md")
set(DOXYGEN_STRIP_FROM_PATH
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/executor/include"
  "${PROJECT_SOURCE_DIR}/executor/cuda/include" "${PROJECT_SOURCE_DIR}/executor/cuda/nccl/include"
  "${PROJECT_SOURCE_DIR}/executor/mpi/include" "${PROJECT_SOURCE_DIR}")
set(DOXYGEN_STRIP_FROM_INC_PATH ${DOXYGEN_STRIP_FROM_PATH})
set(DOXYGEN_EXCLUDE_SYMBOLS *::detail *::detail::*)
# Links to headers lead to their pages.
set(DOXYGEN_FILTER_PATTERNS "*.md=\"sed -E 's,\\[`([^]`]*)`\\]\\([^)]*include/,[\\1](@ref ,g'\"")
set(DOXYGEN_VERBATIM_VARS DOXYGEN_FILTER_PATTERNS)
# The first sentence of a comment is its short form.
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_QT_AUTOBRIEF YES)
set(DOXYGEN_EXTRACT_ALL YES)
set(DOXYGEN_BUILTIN_STL_SUPPORT YES)
set(DOXYGEN_SORT_MEMBER_DOCS NO)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_GENERATE_LATEX NO)
set(DOXYGEN_HTML_OUTPUT reference)
set(DOXYGEN_QUIET YES)
# A comment names the parameters of which there is something to say.
set(DOXYGEN_WARN_IF_INCOMPLETE_DOC NO)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
doxygen_add_docs(reference docs/reference.md include executor/include executor/cuda/include
  executor/cuda/nccl/include executor/mpi/include
  COMMENT "Writing ${PROJECT_BINARY_DIR}/reference/index.html")
