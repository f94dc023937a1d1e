# cmake --install: the libraries for find_package(lockd) and for pkg-config, and lockctl with its
# pages and completions. tests/install uses them all.

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

# lockctl makes its own pages and completions.
set(lockctl_made ${PROJECT_BINARY_DIR}/lockctl-made)
add_custom_command(OUTPUT ${lockctl_made}/lockctl.fish
  COMMAND lockctl man --directory ${lockctl_made}/man1
  COMMAND lockctl completion bash > ${lockctl_made}/lockctl
  COMMAND lockctl completion zsh > ${lockctl_made}/_lockctl
  COMMAND lockctl completion fish > ${lockctl_made}/lockctl.fish
  DEPENDS lockctl
  VERBATIM)
add_custom_target(lockctl_pages ALL DEPENDS ${lockctl_made}/lockctl.fish)
install(TARGETS lockctl)
install(DIRECTORY ${lockctl_made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${lockctl_made}/lockctl
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${lockctl_made}/_lockctl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${lockctl_made}/lockctl.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
