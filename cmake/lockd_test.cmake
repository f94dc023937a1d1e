# lockd_test(<name> SOURCES <file>... [LIBS <target>...] LABELS <label>... [LONG])
#
# One GoogleTest executable and one ctest entry of the same name. Labels: `unit`, `property`
# (RapidCheck), `stress` (many threads; runs alone, unless it is `sessions` too), `sessions` (over
# real sockets), `load` (the server as a process, under load; runs alone), `crash` (journals and
# servers that are cut off), `check` (looks at the sources or the build), `long` (see below).
# The target `<label>_tests` builds all tests of a label.
#
# LONG: `make test` runs it with LOCKD_TEST_SHORT in its environment, which makes it a tenth of its
# size (base/testing/test_size.h), beside others; and `make check` in full and alone, as <name>_long.
# Under a sanitizer sizes are small already.
function(lockd_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG" "" "SOURCES;LIBS;LABELS")

  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest_main)
  # What is tested is compiled as it is shipped; the tests themselves, in half the time.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1> -g1)
  # Instrumented code takes longest to optimize, and these have little to compute.
  if(LOCKD_SANITIZE AND ("unit" IN_LIST arg_LABELS OR "sessions" IN_LIST arg_LABELS))
    target_compile_options(${name} PRIVATE -O0)
  endif()
  # Most of what a test takes to compile is in the headers: several sources share one reading of
  # them, so what they keep to themselves needs names that differ.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # Beside the objects: build/ itself is for programs that people run.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

  add_test(NAME ${name} COMMAND ${name})
  # Sanitizers on a slow machine included; a hang is what the timeout catches.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 900)
  if(("stress" IN_LIST arg_LABELS AND NOT "sessions" IN_LIST arg_LABELS) OR "load" IN_LIST arg_LABELS)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()

  if(arg_LONG AND NOT LOCKD_SANITIZE)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT LOCKD_TEST_SHORT=1 RUN_SERIAL OFF)
    add_test(NAME ${name}_long COMMAND ${name})
    set_tests_properties(${name}_long PROPERTIES LABELS long TIMEOUT 1800 RUN_SERIAL ON)
  endif()

  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET ${label}_tests)
      add_custom_target(${label}_tests)
    endif()
    add_dependencies(${label}_tests ${name})
  endforeach()
endfunction()
