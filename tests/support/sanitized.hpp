#pragma once

//! Defines STRETTO_TEST_SANITIZED where the compiler puts a sanitizer in, which has a malloc and
//! mutexes of its own and takes all addresses there are.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRETTO_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STRETTO_TEST_SANITIZED
#endif
#endif
