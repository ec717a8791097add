// What to train on when nobody says: the text that this repository ships.
#pragma once

#include <filesystem>
#include <vector>

namespace train {

//! The repository's sources and documents, in an order that does not depend on the machine.
//! @throws std::runtime_error when the folder that this program was built from is gone
std::vector<std::filesystem::path> repository_text();

}  // namespace train
