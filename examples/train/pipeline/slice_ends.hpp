// How a run's sequences are cut in slices.
#pragma once

#include <string>
#include <vector>

#include "model/config.hpp"
#include "pipeline/settings.hpp"

namespace train {

//! Where slices end, for config::slice_ends: none where all are equal.
//! @param slices  the settings', or those of the order that they have
//! @throws bad_setting naming --slices, --csv or --slice-lengths
std::vector<int> slice_ends(const config& model, int slices, const pipeline_settings& settings);

//! " in 4 slices", " in 4 slices of 40, 32, 28, 28"; empty where sequences are whole.
std::string slice_words(const config& model);

}  // namespace train
