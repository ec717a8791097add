#pragma once

#include <string>

#include "stretto/model/transformer.hpp"

namespace CLI {
class App;
}

namespace stretto::tool {

//! --hidden, --heads, --sequence, --batch, --vocabulary, --tensor-parallel, --sequence-parallel,
//! --precision.
struct transformer_options {
  transformer model{};
  std::string precision = "mixed";

  void add(CLI::App& command);
  //! Sets what depends on other options.
  //! @param layers       that the model has, and
  //! @param layers_text  the option as typed, for an error about the whole's size
  //! @throws bad_input for sizes that do not divide, or whose sums leave 64 bits
  void settle(int layers, const std::string& layers_text);
};

}  // namespace stretto::tool
