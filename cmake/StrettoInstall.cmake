# find_package(stretto [COMPONENTS executor executor_cuda executor_nccl executor_mpi])

include(CMakePackageConfigHelpers)
set(stretto_package "${CMAKE_INSTALL_LIBDIR}/cmake/stretto")

install(TARGETS stretto EXPORT stretto_targets
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT stretto_targets NAMESPACE stretto:: DESTINATION "${stretto_package}")

if(TARGET stretto_executor)
  install(TARGETS stretto_executor EXPORT stretto_executor_targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET executor_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT stretto_executor_targets NAMESPACE stretto:: DESTINATION "${stretto_package}")
endif()
if(TARGET stretto_executor_cuda)
  install(TARGETS stretto_executor_cuda EXPORT stretto_executor_cuda_targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET executor_cuda_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT stretto_executor_cuda_targets NAMESPACE stretto::
    DESTINATION "${stretto_package}")
endif()
if(TARGET stretto_executor_nccl)
  install(TARGETS stretto_executor_nccl EXPORT stretto_executor_nccl_targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET executor_nccl_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT stretto_executor_nccl_targets NAMESPACE stretto::
    DESTINATION "${stretto_package}")
endif()
if(TARGET stretto_executor_mpi)
  install(TARGETS stretto_executor_mpi EXPORT stretto_executor_mpi_targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET executor_mpi_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT stretto_executor_mpi_targets NAMESPACE stretto::
    DESTINATION "${stretto_package}")
endif()
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
