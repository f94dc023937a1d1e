# cmake --install: the libraries for find_package(lockd) and for pkg-config. tests/install uses both.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(lockd_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockd)

# An export each: who embeds the engine has no need of OpenSSL.
install(TARGETS lockd EXPORT lockdTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS lockd_client EXPORT lockdClientTargets
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/lockd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT lockdTargets NAMESPACE lockd:: DESTINATION ${lockd_cmake_dir})
install(EXPORT lockdClientTargets NAMESPACE lockd:: DESTINATION ${lockd_cmake_dir})

# Before 1.0 a minor version may break the interface.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/lockdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/lockdConfig.cmake ${PROJECT_BINARY_DIR}/lockdConfigVersion.cmake
        DESTINATION ${lockd_cmake_dir})

# Paths in the .pc files are relative to them, so that the installed tree can be moved, and
# `cmake --install --prefix` works.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE lockd_pc_prefix)
foreach(name lockd lockd-client)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
