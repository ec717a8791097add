# find_package(stretto [COMPONENTS executor executor_cuda executor_nccl executor_mpi])

include(CMakePackageConfigHelpers)
set(stretto_package "${CMAKE_INSTALL_LIBDIR}/cmake/stretto")

install(TARGETS stretto EXPORT stretto_targets
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT stretto_targets NAMESPACE stretto:: DESTINATION "${stretto_package}")

foreach(component IN ITEMS executor executor_cuda executor_nccl executor_mpi)
  if(TARGET stretto_${component})
    install(TARGETS stretto_${component} EXPORT stretto_${component}_targets
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      FILE_SET ${component}_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT stretto_${component}_targets NAMESPACE stretto::
      DESTINATION "${stretto_package}")
  endif()
endforeach()
if(TARGET stretto_tool)
  install(TARGETS stretto_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
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
  DESTINATION "${stretto_package}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
