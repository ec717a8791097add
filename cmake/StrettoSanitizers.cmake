# STRETTO_SANITIZE=address,undefined or =thread, for every target of this project.

if(STRETTO_SANITIZE)
  add_compile_options(
    -fsanitize=${STRETTO_SANITIZE}
    -fno-sanitize-recover=all # a finding fails the test that makes it
    -fno-omit-frame-pointer)  # whole stacks in reports
  add_link_options(-fsanitize=${STRETTO_SANITIZE})
  if(STRETTO_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc warns that it does not model std::atomic_thread_fence; where we fence, we say so there.
    add_compile_options(-Wno-tsan)
  endif()
endif()

# Which branches were taken is told to libFuzzer, which only the fuzzers link.
if(STRETTO_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "STRETTO_FUZZ: libFuzzer is clang's; set CMAKE_CXX_COMPILER to clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# For what does not handle untyped bytes, as the executor does, and takes long to compile: whether
# pointers are null, which AddressSanitizer sees too, or misaligned takes a quarter of the time.
set(STRETTO_SANITIZE_LESS "")
if(STRETTO_SANITIZE MATCHES "undefined")
  set(STRETTO_SANITIZE_LESS -fno-sanitize=null,alignment)
endif()

# For programs that run for long: uses of what functions had on the stack after they returned, which
# gcc leaves out by itself, take a fifth of the time. The tests of the library look for them.
set(STRETTO_SANITIZE_NO_RETURNS "")
if(STRETTO_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(STRETTO_SANITIZE_NO_RETURNS -fsanitize-address-use-after-return=never)
endif()
