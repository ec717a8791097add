#pragma once

// Included first by what all else includes, so that this sentence stands before what follows from
// it.
#if defined(_MSVC_LANG)
#define STRETTO_LANGUAGE _MSVC_LANG
#else
#define STRETTO_LANGUAGE __cplusplus
#endif
#if STRETTO_LANGUAGE < 202002L
#error "stretto needs C++20: -std=c++20, which nvcc must be told, too"
#endif
#undef STRETTO_LANGUAGE
