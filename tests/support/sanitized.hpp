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

namespace test_support {

//! Where it is so, everything takes several times as long, and what is asked of many cases whose
//! code is the same is asked of some.
#ifdef STRETTO_TEST_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace test_support
