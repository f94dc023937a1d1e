# Instruments everything with LOCKD_SANITIZE; the first finding ends the program.

add_compile_options(
  -fsanitize=${LOCKD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
  -D_GLIBCXX_ASSERTIONS)
add_link_options(-fsanitize=${LOCKD_SANITIZE})
if(LOCKD_FUZZ)
  add_compile_options(
    -fsanitize-coverage-ignorelist=${PROJECT_SOURCE_DIR}/tests/fuzz/coverage_ignored.txt)
endif()
