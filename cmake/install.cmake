# cmake --install: the library for find_package(lockd) and for pkg-config. tests/install uses both.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(lockd_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockd)

install(TARGETS lockd EXPORT lockdTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/lockd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT lockdTargets NAMESPACE lockd:: DESTINATION ${lockd_cmake_dir})

# Before 1.0 a minor version may break the interface.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/lockdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/lockdConfig.cmake ${PROJECT_BINARY_DIR}/lockdConfigVersion.cmake
        DESTINATION ${lockd_cmake_dir})

# Paths in lockd.pc are relative to the file, so that the installed tree can be moved, and
# `cmake --install --prefix` works.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE lockd_pc_prefix)
configure_file(cmake/lockd.pc.in lockd.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lockd.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
