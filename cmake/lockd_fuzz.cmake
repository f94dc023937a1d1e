# lockd_fuzz(<name> SOURCES <file>... [LIBS <target>...])
#
# A function that libFuzzer calls, and the inputs worth keeping: tests/fuzz/corpus/<name>/. In the
# fuzz build it is a fuzzer, which `make fuzz` runs; in any other build with tests it is a program
# that feeds it those inputs once, under whatever sanitizer that build has, and a ctest entry. A
# release builds and runs those for `make check-nightly` alone: the target `fuzzers`, the label `fuzz`.
#
# Where few sources are needed they are listed, not linked as a library: then a fuzzer is built in
# seconds. Either way, what it fuzzes is instrumented.
function(lockd_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  add_executable(${name} ${arg_SOURCES})
  if(NOT LOCKD_SANITIZE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1> -g1)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${name} SYSTEM PRIVATE ${Boost_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)

  if(LOCKD_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    if(NOT TARGET fuzz_replay)
      add_library(fuzz_replay OBJECT EXCLUDE_FROM_ALL
        ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    endif()
    target_link_libraries(${name} PRIVATE fuzz_replay)
    add_test(NAME ${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 900)
  endif()

  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()
