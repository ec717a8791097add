#pragma once

#include "stretto/base/language.hpp"  // first

#include <cstddef>
#include <cstdint>

namespace stretto {

//! Zero-filled working memory of a size known only to the running function: the same at compile
//! time (a transient allocation) and at run time. Elements are not range-checked; a constant
//! evaluation that leaves the range does not compile. Structs of which there are many do without
//! initialisers of their own: compilers run these for each, and fill with zeros at once.
template <class T>
class scratch {
 public:
  constexpr explicit scratch(std::int64_t count)
      : items_(new T[static_cast<std::size_t>(count > 0 ? count : 1)]{}),  // nvcc: never empty
        count_(count) {}
  constexpr ~scratch() { delete[] items_; }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  constexpr T& operator[](std::int64_t at) { return items_[at]; }
  constexpr const T& operator[](std::int64_t at) const { return items_[at]; }
  constexpr std::int64_t size() const { return count_; }
  constexpr T* data() { return items_; }
  constexpr const T* data() const { return items_; }

 private:
  T* items_;
  std::int64_t count_;
};

//! The same of a size that the compiler knows; 0: only the running function does. gcc evaluates an
//! element of an array faster than one behind a pointer, hence `items[at]`.
template <class T, std::int64_t Count>
struct sized_scratch {
  constexpr explicit sized_scratch(std::int64_t) {}

  T items[static_cast<std::size_t>(Count)]{};
};
template <class T>
struct sized_scratch<T, 0> {
  constexpr explicit sized_scratch(std::int64_t count)
      : items(new T[static_cast<std::size_t>(count > 0 ? count : 1)]{}) {}
  constexpr ~sized_scratch() { delete[] items; }
  sized_scratch(const sized_scratch&) = delete;
  sized_scratch& operator=(const sized_scratch&) = delete;

  T* items;
};

}  // namespace stretto
