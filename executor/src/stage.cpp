#include "stretto/executor/stage.hpp"

#include <string>

#include "size_source.hpp"
#include "stretto/model/plan_names.hpp"

namespace stretto::executor {

void context::lack(buffer_role role, std::span<const std::byte> given, std::int64_t count,
                   std::size_t element) {
  const std::string what(name(role));
  std::string text = "it asks for " + std::to_string(count) + " elements of " +
                     std::to_string(element) + " bytes of its " + what + ", ";
  if (given.data() == nullptr)
    text += "and is given none";
  else
    text += "which has " + std::to_string(given.size()) + " bytes; how many they are " +
            std::string(said_by(role));
  throw buffer_error(text);
}

}  // namespace stretto::executor
