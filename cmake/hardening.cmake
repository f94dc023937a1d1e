# Flags that turn memory errors into crashes instead of exploits, after the OpenSSF's compiler
# options hardening guide. tests/hardening checks the result.

include(CheckCXXCompilerFlag)
include(CheckPIESupported)

# Adds the first of the given flags that this compiler and processor know; none is fine.
function(lockd_add_first_known)
  foreach(flag IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "LOCKD_KNOWS${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options(${flag})
      return()
    endif()
  endforeach()
endfunction()

add_compile_options(
  -D_GLIBCXX_ASSERTIONS
  -fstack-clash-protection
  -fstack-protector-strong
  -fno-delete-null-pointer-checks
  -fno-strict-overflow
  -fno-strict-aliasing
  # Without it, position independent code may not inline its own global functions.
  -fno-semantic-interposition
  # _FORTIFY_SOURCE needs an optimizer, and warns without one.
  "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")

lockd_add_first_known(-fcf-protection=full -mbranch-protection=standard) # x86, ARM
lockd_add_first_known(-ftrivial-auto-var-init=zero -ftrivial-auto-var-init=pattern) # clang < 16
lockd_add_first_known(-fstrict-flex-arrays=3) # gcc 13, clang 16
lockd_add_first_known(-fzero-init-padding-bits=all) # gcc 15
lockd_add_first_known(-fhardened) # gcc 14
if(LOCKD_KNOWS_fhardened)
  # It would warn of every flag above that it did not have to add.
  add_compile_options(-Wno-hardened)
endif()

check_pie_supported(LANGUAGES CXX)
add_link_options(
  LINKER:-z,relro
  LINKER:-z,now
  LINKER:-z,noexecstack
  LINKER:-z,nodlopen
  LINKER:--as-needed
  LINKER:--no-copy-dt-needed-entries)
