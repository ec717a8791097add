// Where the pipeline computes: this machine's processor or GPUs.
#pragma once

#include <string>
#include <vector>

#include "pipeline/settings.hpp"

namespace train {

//! What --device says.
struct device_choice {
  std::string typed{};
  bool gpu = false;
  std::vector<int> numbers{};  //!< CUDA's, as named; none: not said which
};

//! @param device     host; cuda; or cuda:1, or cuda:0,1, by CUDA's numbers
//! @param transport  by its name
//! @throws bad_setting for another word, and for a transport that is not between such devices
device_choice read_device(const std::string& device, const std::string& transport);

//! Before any process is joined. A program without CUDA becomes its sister with it for GPUs, and
//! does not return then.
//! @param argv  what this program was started with
//! @throws bad_setting where there is no such sister, or no NCCL for its transport
void go_to(const device_choice& device, const std::string& transport, char** argv);

//! Has the pipeline compute there.
//! @param local  which process of its machine this is; -1: nobody says
//! @throws bad_setting for GPUs that are not there
void use(const device_choice& device, int local, pipeline_settings& to);

}  // namespace train
