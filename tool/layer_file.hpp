#pragma once

#include "layers.hpp"

namespace stretto::tool {

//! Reads the file of --layer-costs.
//! @param to  has the layers, each with what the options say of it; gets what the file says
//! @throws bad_input naming the file, the place in it and the rule
void read_layer_file(const layer_options& options, dealt_layers& to);

}  // namespace stretto::tool
