#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stretto/model/machine.hpp"

namespace stretto::tool {

//! Whether it may name a measured machine: a struct of the emitted header.
bool is_identifier(const std::string& text);
//! What is wrong with what is none.
inline constexpr char identifier_rule[] =
    "must be a C++ identifier, no keyword, and no name that the header or the language uses";

//! A measured machine, with what its view refers to. Its file is one object:
//!   {"machine": "epyc_7763",          a C++ identifier: the emitted header's type
//!    "flops": 90, "memory": 12, "link": 9, "launch": 0, "latency": 4000,
//!    "multiprocessors": 0, "collective": 0,            as in stretto::machine
//!    "single": 45, "to_host": 5, "fp8": 180,           each may be left out
//!    "kernels": [{"name": "product",                   so may these: then all goes by the rates
//!                 "axes": [[16, 64], [16, 64], [16, 64]],     one to three, sizes ascending
//!                 "times": [320, 900, ...]}]}       nanoseconds, the last axis' first
class measured_machine {
 public:
  struct kernel {
    std::string name;
    std::vector<std::vector<std::int64_t>> axes;
    std::vector<std::int64_t> times;
  };
  std::string name = "host";
  machine rates{};
  std::vector<kernel> kernels;

  //! @throws bad_input naming the option, the file, the field (of what is no JSON, the line) and
  //!         the rule
  static measured_machine read(const std::string& option, const std::string& path);
  std::string json() const;
  //! A C++ header with the struct `name`, whose member `on` is a constant stretto::machine.
  //! @param command  what asked for it, for its first comment
  std::string header(const std::string& command) const;

  //! Valid as long as this, and until it changes.
  const machine& view();

 private:
  std::vector<measured_kernel> views_;
  machine view_;
};

}  // namespace stretto::tool
