#pragma once

#include <string>
#include <vector>

#include "stretto/model/transformer.hpp"

namespace CLI {
class App;
}

namespace stretto::tool {

//! --slices, --slice-lengths: how sequences are cut.
struct slice_options {
  int slices = 1;
  std::string lengths = "balanced";

  void add(CLI::App& command);
  //! A model of each slice, in order; the model itself where sequences are whole.
  //! @throws bad_input naming the option, for lengths that are not the sequence's or that the model
  //!         does not allow
  std::vector<transformer> cut(const transformer& model) const;

 private:
  std::vector<sequence_part> parts(const transformer& model) const;
};

}  // namespace stretto::tool
