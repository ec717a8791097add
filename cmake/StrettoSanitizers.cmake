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
