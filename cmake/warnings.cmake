# The warnings every source compiles without.

add_compile_options(
  -Wall
  -Wextra
  -Wformat=2
  -Wconversion
  -Wsign-conversion
  -Wimplicit-fallthrough
  # What a designated initializer leaves out is left out on purpose.
  -Wno-missing-field-initializers
  -Werror=format-security)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wtrampolines -Wbidi-chars=any)
else()
  # Checks GUARDED_BY and its kin; gcc has nothing like it.
  add_compile_options(-Wthread-safety -Werror=thread-safety)
endif()

# gcc's manual advises against -Werror with sanitizers: instrumented code brings false warnings,
# of -Wmaybe-uninitialized above all.
if(LOCKD_WERROR AND NOT LOCKD_SANITIZE)
  add_compile_options(-Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc's optimizer guesses these, and guesses wrong inside its own <string> and <vector>.
    add_compile_options(
      -Wno-error=array-bounds
      -Wno-error=maybe-uninitialized
      -Wno-error=restrict
      -Wno-error=stringop-overflow)
  endif()
endif()
