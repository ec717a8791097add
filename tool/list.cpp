#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "command.hpp"

namespace stretto::tool {

namespace {

std::string chunks_of(const schedule_facts& facts) {
  if (facts.chunks == std::vector{1}) return "one chunk per rank";
  if (facts.chunks == std::vector{2}) return "two chunks per rank";
  return "any number of chunks";
}

}  // namespace

void add_list(CLI::App& app) {
  app.add_subcommand("list", "The schedules there are")->callback([] {
    for (const schedule_facts& facts : catalogue()) {
      std::cout << facts.name
                << std::string(facts.name.size() < 16 ? 16 - facts.name.size() : 1, ' ')
                << chunks_of(facts) << (facts.slices ? ", any number of slices" : "");
      if (facts.forward_only) std::cout << ", forwards only";
      for (std::size_t at = 0; at < facts.options.size(); ++at)
        std::cout << (at == 0 ? "; takes " : " ") << facts.options[at];
      std::cout << '\n';
    }
  });
}

}  // namespace stretto::tool
