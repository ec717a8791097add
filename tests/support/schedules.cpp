#include "support/schedules.hpp"

#include "stretto/schedule/by_name.hpp"

namespace support {

const std::vector<stretto::schedule::any>& schedules() {
  static const std::vector<stretto::schedule::any> all = stretto::schedule::catalogue();
  return all;
}

}  // namespace support
