# cmake --install: the programs with their pages and completions, and the libraries for
# find_package(lockd) and for pkg-config. tests/install uses them all.
#
# Two components, which become a package each: `programs` and `development`.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(lockd_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockd)

# --- development ---

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

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

# --- programs ---

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME programs)
install(TARGETS dflockd lockd-server lockctl)

# Pages, completions and settings are made by the programs' own tables.
set(lockd_made ${PROJECT_BINARY_DIR}/made)
add_custom_command(OUTPUT ${lockd_made}/lockctl.fish
  COMMAND lockctl man --directory ${lockd_made}/man1
  COMMAND lockctl completion bash > ${lockd_made}/lockctl
  COMMAND lockctl completion zsh > ${lockd_made}/_lockctl
  COMMAND lockctl completion fish > ${lockd_made}/lockctl.fish
  DEPENDS lockctl
  VERBATIM)
set(lockd_bash_completions ${lockd_made}/dflockd ${lockd_made}/lockd-server)
set(lockd_zsh_completions ${lockd_made}/_dflockd ${lockd_made}/_lockd-server)
set(lockd_fish_completions ${lockd_made}/dflockd.fish ${lockd_made}/lockd-server.fish)
add_custom_command(OUTPUT ${lockd_made}/dflockd.toml ${lockd_made}/dflockd.1
    ${lockd_made}/lockd-server.1 ${lockd_made}/configuration.md
    ${lockd_bash_completions} ${lockd_zsh_completions} ${lockd_fish_completions}
  COMMAND server_pages ${lockd_made}
  DEPENDS server_pages
  VERBATIM)
file(MAKE_DIRECTORY ${lockd_made})
add_custom_target(pages ALL DEPENDS ${lockd_made}/lockctl.fish ${lockd_made}/dflockd.toml)
install(DIRECTORY ${lockd_made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${lockd_made}/dflockd.1 ${lockd_made}/lockd-server.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${lockd_made}/lockctl ${lockd_bash_completions}
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${lockd_made}/_lockctl ${lockd_zsh_completions}
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${lockd_made}/lockctl.fish ${lockd_fish_completions}
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
