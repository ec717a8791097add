# find_package(stretto [COMPONENTS executor executor_cuda executor_nccl executor_mpi])

include(CMakePackageConfigHelpers)
set(stretto_package "${CMAKE_INSTALL_LIBDIR}/cmake/stretto")

# `cmake --install --component`: stretto_headers, with the package's files; stretto_executor,
# stretto_executor_cuda, ..., each with its own; stretto_tool.
install(TARGETS stretto EXPORT stretto_targets
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT stretto_headers)
install(EXPORT stretto_targets NAMESPACE stretto:: DESTINATION "${stretto_package}"
  COMPONENT stretto_headers)

foreach(component IN ITEMS executor executor_cuda executor_nccl executor_mpi)
  if(TARGET stretto_${component})
    install(TARGETS stretto_${component} EXPORT stretto_${component}_targets
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT stretto_${component}
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT stretto_${component}
      FILE_SET ${component}_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT stretto_${component})
    install(EXPORT stretto_${component}_targets NAMESPACE stretto::
      DESTINATION "${stretto_package}" COMPONENT stretto_${component})
  endif()
endforeach()
if(TARGET stretto_tool)
  install(TARGETS stretto_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
    COMPONENT stretto_tool)
endif()

configure_package_config_file(cmake/strettoConfig.cmake.in
  "${PROJECT_BINARY_DIR}/strettoConfig.cmake"
  INSTALL_DESTINATION "${stretto_package}")
# Before 1.0 a minor version may break what the one before had.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/strettoConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/strettoConfig.cmake"
  "${PROJECT_BINARY_DIR}/strettoConfigVersion.cmake"
  DESTINATION "${stretto_package}" COMPONENT stretto_headers)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT stretto_headers)

# For whoever builds without CMake. The standard (C++20 or newer) and constexpr limits, which differ by
# compiler, are the builder's: of two -std the last counts, and a newer one must not be undone.
# stretto_pkg_config(name component description REQUIRES name LIBS flags...)
function(stretto_pkg_config name component description)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "REQUIRES" "LIBS")
  # Relative, so that what is installed may be moved.
  file(RELATIVE_PATH up "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  set(includedir [[${prefix}]])
  cmake_path(APPEND includedir "${CMAKE_INSTALL_INCLUDEDIR}") # as it is, where that is absolute
  set(libdir [[${prefix}]])
  cmake_path(APPEND libdir "${CMAKE_INSTALL_LIBDIR}")
  list(JOIN arg_LIBS " " libs)
  set(own [[-I${includedir}]])
  if(arg_REQUIRES)
    set(own) # who requires another package has its flags
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY CONTENT
[[prefix=${pcfiledir}/@up@
includedir=@includedir@
libdir=@libdir@

Name: @name@
Description: @description@
Version: @PROJECT_VERSION@
Requires: @arg_REQUIRES@
Cflags: @own@
Libs: @libs@
]])
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT ${component})
endfunction()

stretto_pkg_config(stretto stretto_headers "${PROJECT_DESCRIPTION}")
if(TARGET stretto_executor)
  stretto_pkg_config(stretto-executor stretto_executor
    "Runs the plans of stretto on the host's threads"
    REQUIRES stretto LIBS [[-L${libdir}]] -lstretto_executor -pthread)
endif()
if(TARGET stretto_executor_mpi)
  stretto_pkg_config(stretto-executor-mpi stretto_executor_mpi
    "Runs the plans of stretto in several processes; linked by MPI's compiler"
    REQUIRES stretto-executor LIBS [[-L${libdir}]] -lstretto_executor_mpi)
endif()
