include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/lockdTargets.cmake)

# The client needs OpenSSL, the engine does not: where there is none, there is only the engine.
find_package(OpenSSL 3 QUIET)
if(OPENSSL_FOUND)
  include(${CMAKE_CURRENT_LIST_DIR}/lockdClientTargets.cmake)
  set(lockd_client_FOUND TRUE)
elseif(lockd_FIND_REQUIRED_client)
  set(lockd_FOUND FALSE)
  set(lockd_NOT_FOUND_MESSAGE "lockd::client needs OpenSSL 3, which was not found")
endif()
