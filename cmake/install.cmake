# cmake --install: the programs with their pages and completions, and the libraries for
# find_package(lockd) and for pkg-config. tests/install uses them all.
#
# Two components, which become a package each: `programs` and `development`; and a third where gRPC
# is there, `cluster`.

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
install(TARGETS lockd_program lockctl)
foreach(link dflockd lockd-server)
  install(FILES $<TARGET_FILE_DIR:lockd_program>/${link} DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()

# Pages, completions and settings are made by the programs' own tables.
set(lockd_made ${PROJECT_BINARY_DIR}/made)
add_custom_command(OUTPUT ${lockd_made}/lockctl.fish
  COMMAND lockctl man --directory ${lockd_made}/man1
  COMMAND lockctl completion bash > ${lockd_made}/lockctl
  COMMAND lockctl completion zsh > ${lockd_made}/_lockctl
  COMMAND lockctl completion fish > ${lockd_made}/lockctl.fish
  DEPENDS lockctl
  VERBATIM)
set(lockd_servers lockd dflockd lockd-server lockd-ha)
set(lockd_server_pages ${lockd_made}/lockd.toml ${lockd_made}/lockd-ha.toml
  ${lockd_made}/configuration.md)
foreach(name IN LISTS lockd_servers)
  list(APPEND lockd_server_pages ${lockd_made}/${name}.1
    ${lockd_made}/${name} ${lockd_made}/_${name} ${lockd_made}/${name}.fish)
endforeach()
add_custom_command(OUTPUT ${lockd_server_pages}
  COMMAND server_pages ${lockd_made}
  DEPENDS server_pages
  VERBATIM)
file(MAKE_DIRECTORY ${lockd_made})
add_custom_target(pages ALL DEPENDS ${lockd_made}/lockctl.fish ${lockd_made}/lockd.toml)

function(lockd_install_completions name)
  install(FILES ${lockd_made}/${name}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${lockd_made}/_${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${lockd_made}/${name}.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()

install(DIRECTORY ${lockd_made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
lockd_install_completions(lockctl)
foreach(name lockd dflockd lockd-server)
  install(FILES ${lockd_made}/${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  lockd_install_completions(${name})
endforeach()

# --- cluster ---

if(LOCKD_HA)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME cluster)
  install(TARGETS lockd-ha)
  install(FILES ${lockd_made}/lockd-ha.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  lockd_install_completions(lockd-ha)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME programs)
endif()
