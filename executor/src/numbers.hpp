#pragma once

#include <cstdint>
#include <sstream>
#include <string>

namespace stretto::executor {

//! What processes tell each other in detail: whole numbers, read in the order in which they were
//! written.
class numbers {
 public:
  numbers() = default;
  explicit numbers(const std::string& words) : in_(words) {}

  numbers& operator<<(std::int64_t value) {
    out_ << value << ' ';
    return *this;
  }
  bool more() { return static_cast<bool>(in_ >> std::ws) && !in_.eof(); }
  template <class Number>
  Number next() {
    std::int64_t value = 0;
    in_ >> value;
    return static_cast<Number>(value);
  }
  std::string words() const { return out_.str(); }

 private:
  std::ostringstream out_{};
  std::istringstream in_{};
};

}  // namespace stretto::executor
