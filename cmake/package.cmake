# What a package has besides what `cmake --install` puts anywhere, and how CPack makes Debian's
# packages of it: `lockd` from the component `programs`, `lockd-dev` from `development`,
# `lockd-ha` from `cluster`.
# scripts/package runs it.

# --- the service ---

set(LOCKD_BINDIR ${CMAKE_INSTALL_FULL_BINDIR})
set(LOCKD_CONFIG_DIR ${CMAKE_INSTALL_FULL_SYSCONFDIR}/lockd)

set(LOCKD_UNIT_PROGRAM lockd)
set(LOCKD_UNIT_FLAGS " --wal %S/lockd")
set(LOCKD_UNIT_BOUNDS " but its state, no peer but this machine")
set(LOCKD_UNIT_STATE "StateDirectory=lockd\nStateDirectoryMode=0700\n")
set(LOCKD_UNIT_PEERS "# Who may connect, besides what the server itself allows.
IPAddressDeny=any
IPAddressAllow=localhost
")
configure_file(packaging/systemd/lockd.service.in lockd.service @ONLY)
install(FILES ${lockd_made}/lockd.toml DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/lockd)

# What it keeps is in etcd, which is elsewhere.
set(LOCKD_UNIT_PROGRAM lockd-ha)
set(LOCKD_UNIT_FLAGS "")
set(LOCKD_UNIT_BOUNDS "")
set(LOCKD_UNIT_STATE "")
set(LOCKD_UNIT_PEERS "")
configure_file(packaging/systemd/lockd.service.in lockd-ha.service @ONLY)

if(LOCKD_PORTABLE)
  set(lockd_unit_dir lib/systemd/system)
else()
  set(lockd_unit_dir /lib/systemd/system) # where Debian 12 looks for it
endif()
install(FILES ${PROJECT_BINARY_DIR}/lockd.service DESTINATION ${lockd_unit_dir})
install(FILES packaging/systemd/lockd.socket packaging/prometheus/lockd.rules.yml
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES packaging/grafana/lockd.json
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples RENAME grafana.json)

if(LOCKD_HA)
  install(FILES ${lockd_made}/lockd-ha.toml
          DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/lockd COMPONENT cluster)
  install(FILES ${PROJECT_BINARY_DIR}/lockd-ha.service
          DESTINATION ${lockd_unit_dir} COMPONENT cluster)
endif()

# --- linking ---

set(lockd_programs lockd_program lockctl)
if(LOCKD_HA)
  list(APPEND lockd_programs lockd-ha)
endif()
foreach(program IN LISTS lockd_programs)
  # Which objects of which libraries went in: scripts/sbom reads it.
  target_link_options(${program} PRIVATE LINKER:-Map=$<TARGET_FILE:${program}>.map)
  # Debug information is not shipped, and has paths as ccache saw them: through the build id they
  # would get in.
  target_link_options(${program} PRIVATE LINKER:--strip-debug)
endforeach()

if(LOCKD_PORTABLE)
  # lockctl is one file, which needs nothing but the C library and OpenSSL. The servers cannot be:
  # Debian has prometheus-cpp as a shared library alone, and two C++ libraries do not go together.
  # They find theirs beside them.
  target_link_options(lockctl PRIVATE -static-libstdc++ -static-libgcc)
  set_target_properties(lockd_program PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/lockd")
  # As DT_RPATH, which also holds for what those libraries need themselves.
  target_link_options(lockd_program PRIVATE LINKER:--disable-new-dtags)
  return()
endif()

# --- Debian's packages ---

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT "lockd maintainers <maintainers@lockd.example>"
    CACHE STRING "Who stands in the packages as their maintainer")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/packages)
set(CPACK_COMPONENTS_ALL programs development)
if(LOCKD_HA)
  list(APPEND CPACK_COMPONENTS_ALL cluster)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Strips, compresses and dates what was staged.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian/finish.cmake)
set(CPACK_LOCKD_SOURCE_DIR ${PROJECT_SOURCE_DIR})

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own, as the first line below
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME lockd)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION
"server and client for locks and semaphores with leases and fences
lockd keeps named locks and counting semaphores for many machines: first in,
first out; a lease ends on time and never early, and every grant carries a
fencing token that rises. It speaks the line protocol of dflockd and HTTP, has
a dashboard, and keeps holds across restarts in a write-ahead log.

This package has the server lockd, also under the names dflockd and
lockd-server with their defaults, and lockctl, which runs commands under a
lock and shows who holds what.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/conffiles
    ${PROJECT_SOURCE_DIR}/packaging/debian/postinst
    ${PROJECT_SOURCE_DIR}/packaging/debian/postrm
    ${PROJECT_SOURCE_DIR}/packaging/debian/prerm)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME lockd-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libssl-dev (>= 3)")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"locks and semaphores for C++: engine and client (development files)
The lock engine to embed in a C++20 program, and the client of dflockd's
protocol, as static libraries with headers, for CMake's find_package and for
pkg-config.")

set(CPACK_DEBIAN_CLUSTER_PACKAGE_NAME lockd-ha)
set(CPACK_DEBIAN_CLUSTER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_CLUSTER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CLUSTER_PACKAGE_RECOMMENDS lockd)
set(CPACK_DEBIAN_CLUSTER_DESCRIPTION
"server for locks and semaphores, several on one etcd
lockd-ha is the server lockd with high availability: two or three servers, one
of which leads, keep their holds in an etcd cluster. The next leader has every
hold that the last one acknowledged.

The service is not started: it has to be told where etcd is.")
set(CPACK_DEBIAN_CLUSTER_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/ha/conffiles
    ${PROJECT_SOURCE_DIR}/packaging/debian/ha/postinst
    ${PROJECT_SOURCE_DIR}/packaging/debian/ha/postrm
    ${PROJECT_SOURCE_DIR}/packaging/debian/ha/prerm)

include(CPack)
