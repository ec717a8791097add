// Counts what is taken from the heap, on any thread: at malloc itself, below operator new and
// Eigen's own allocator; of a sanitizer's malloc, by its hook. To be included once in a program.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "support/sanitized.hpp"

namespace {
std::atomic<long> allocations{0};
void count_allocation() {
  allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

#if defined(STRETTO_TEST_SANITIZED)

// As in their allocator_interface.h, which gcc comes without.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*taken)(const volatile void* memory, std::size_t bytes),
    void (*given_back)(const volatile void* memory));

namespace {
const int counts_allocations = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { count_allocation(); }, [](const volatile void*) {});
}  // namespace

#else  // glibc's

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) noexcept {
  count_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) noexcept {
  count_allocation();
  return __libc_calloc(number, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  count_allocation();
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  count_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  count_allocation();
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}
}

#endif
