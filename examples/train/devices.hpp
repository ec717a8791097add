// Where the pipeline computes: this machine's processor or a GPU.
#pragma once

#include <string>

#include "pipeline/settings.hpp"

namespace train {

//! A program without CUDA becomes its sister with it for a GPU, and does not return then.
//! @param device  host; or cuda or cuda:1, a GPU by CUDA's number
//! @param argv    what this program was started with
//! @throws bad_setting for another word, a GPU that is not there, where there is no such sister, or
//!         for workers of several processes
void choose_device(const std::string& device, pipeline_settings& to, char** argv);

}  // namespace train
