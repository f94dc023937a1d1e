# CPack runs this between staging and packing.
execute_process(
  COMMAND ${CPACK_LOCKD_SOURCE_DIR}/packaging/debian/finish
    ${CPACK_TEMPORARY_DIRECTORY} ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}
    ${CPACK_PACKAGE_CONTACT}
  COMMAND_ERROR_IS_FATAL ANY)
