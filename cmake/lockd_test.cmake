# lockd_test(<name> SOURCES <file>... [LIBS <target>...] LABELS <label>... [SHARDS <n>] [LONG])
#
# One GoogleTest executable and its ctest entry of the same name. The target `<label>_tests` builds
# all tests of a label. Labels:
#   unit        no socket, no process, no wait
#   property    random inputs (RapidCheck)
#   quick       `make quick` runs it besides unit and property tests
#   threads     `make test-tsan` runs it: several threads share what it tests
#   stress      many threads at once; runs alone
#   sessions    over real sockets
#   load        the server as a process, under load; runs alone
#   crash       journals and servers that are cut off
#   check       looks at the sources or the build
#   long        only `make check-nightly` runs it
#   ha, nightly on a real etcd: `make test-ha`, `make test-ha-nightly`
#
# SHARDS: the tests of a program that mostly waits are spread over n ctest entries, <name>_1 to
# <name>_n, which run side by side.
#
# LONG: `make test` sets LOCKD_TEST_SHORT, which makes the test a tenth of its size
# (base/testing/test_size.h), and runs it beside others. `make check-nightly` runs <name>_long, in
# full and alone. Under a sanitizer sizes are small already.
function(lockd_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG" "SHARDS" "SOURCES;LIBS;LABELS")

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

  lockd_test_run(${name} PROGRAM ${name} LABELS ${arg_LABELS} SHARDS ${arg_SHARDS})
  if("stress" IN_LIST arg_LABELS OR "load" IN_LIST arg_LABELS)
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

# lockd_test_run(<name> PROGRAM <target> LABELS <label>... [SHARDS <n>] [ENVIRONMENT <NAME=value>...])
#
# The ctest entries of a program: one of that name, or <name>_1 to <name>_n.
function(lockd_test_run name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PROGRAM;SHARDS" "LABELS;ENVIRONMENT")
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(entry ${name})
    set(environment ${arg_ENVIRONMENT})
    if(arg_SHARDS GREATER 1)
      string(APPEND entry _${shard})
      math(EXPR index "${shard} - 1")
      list(APPEND environment GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
    endif()
    add_test(NAME ${entry} COMMAND ${arg_PROGRAM})
    # Sanitizers on a slow machine included; a hang is what the timeout catches.
    set_tests_properties(${entry} PROPERTIES
      LABELS "${arg_LABELS}" ENVIRONMENT "${environment}" TIMEOUT 900)
  endforeach()
endfunction()
