// What the operating system says that this process holds in memory.
#pragma once

#include <cstdint>
#include <optional>

namespace train {

//! Bytes in memory now, and the most so far. Empty where the system does not tell.
std::optional<std::int64_t> resident_bytes();
std::optional<std::int64_t> most_resident_bytes();

//! Bytes of this program's code and constants that are not in memory yet. 0 where the system does
//! not tell.
std::int64_t absent_code_bytes();

}  // namespace train
