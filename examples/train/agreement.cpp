#include "agreement.hpp"

#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <vector>

#ifdef STRETTO_TRAIN_WITH_MACHINES
#include "tool/machine_file.hpp"
#endif

namespace train {
namespace {

constexpr auto longest = std::chrono::minutes(2);  // between the first to come and the last

// Names and values end with what no argument of a program contains.
std::string packed(std::span<const told_option> options) {
  std::string made;
  for (const told_option& each : options) (((made += each.name) += '\0') += each.value) += '\0';
  return made;
}

std::vector<told_option> unpacked(std::string_view text) {
  std::vector<told_option> made;
  const auto next = [&] {
    const std::size_t end = std::min(text.find('\0'), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  while (!text.empty()) {
    std::string name = next();
    made.push_back({std::move(name), next()});
  }
  return made;
}

std::string words(std::size_t process, const told_option& of) {
  return "process " + std::to_string(process) +
         (of.value.empty() ? " has no " + of.name : " has " + of.name + ' ' + of.value);
}

}  // namespace

void must_agree(std::span<const told_option> mine, stretto::executor::bootstrap& with) {
  const std::vector<std::string> all =
      with.all_gather("options", packed(mine), std::chrono::steady_clock::now() + longest);
  const std::vector<told_option> first = unpacked(all.front());
  for (std::size_t process = 1; process < all.size(); ++process) {
    const std::vector<told_option> other = unpacked(all[process]);
    const auto [here, there] = std::ranges::mismatch(first, other);
    if (here == first.end() && there == other.end()) continue;
    // Programs of two versions may know different options.
    const told_option& name = here != first.end() ? *here : *there;
    const bool both = here != first.end() && there != other.end() && here->name == there->name;
    const told_option none{name.name, {}};
    throw common_end(2, words(0, here != first.end() ? *here : none) + ", " +
                       words(process, both || here == first.end() ? *there : none) +
                       ": all processes must be started with the same");
  }
}

told_option told(const corpus& text) {
  return {"FILES", text.described()};
}

std::string told_machine([[maybe_unused]] const options& of) {
#ifdef STRETTO_TRAIN_WITH_MACHINES
  if (of.machine == nullptr) return {};
  const std::string text = of.machine->json();
  char value[32];
  std::snprintf(value, sizeof value, " with checksum %08lx",
                crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(text.data()),
                        text.size()));
  return of.machine->name + value;
#else
  return {};
#endif
}

}  // namespace train
