// A main for a target where there is no libFuzzer: runs it on files, and on what fixed seeds make
// of them and of nothing. The same every time.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz/support/fuzz.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;

bytes contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bytes changed(bytes made, std::minstd_rand& random) {
  const auto place = [&] {
    return made.begin() + static_cast<std::ptrdiff_t>(random() % (made.size() + 1));
  };
  for (std::size_t times = 1 + random() % 4; times > 0; --times) {
    const auto one = place(), other = place();
    switch (random() % 4) {
      case 0:
        made.insert(one, static_cast<std::uint8_t>(random()));
        break;
      case 1:
        made.erase(one,
                   one + std::min(made.end() - one, static_cast<std::ptrdiff_t>(random() % 8)));
        break;
      case 2:
        if (one != made.end()) *one = static_cast<std::uint8_t>(random());
        break;
      default:
        std::rotate(std::min(one, other), std::max(one, other), made.end());
    }
  }
  return made;
}

}  // namespace

//! PROGRAM TIMES [FILE or FOLDER...]: every file, and so many others.
int main(int count, char** arguments) {
  const int times = std::atoi(arguments[1]);
  std::vector<std::filesystem::path> files;
  for (int at = 2; at < count; ++at) {
    const std::filesystem::path path = arguments[at];
    if (!std::filesystem::is_directory(path))
      files.push_back(path);
    else
      for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry);
  }
  std::sort(files.begin(), files.end());
  std::vector<bytes> seeds(1);
  for (const auto& path : files) seeds.push_back(contents(path));
  for (const bytes& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
  std::minstd_rand random(1);
  for (int at = 0; at < times; ++at) {
    bytes made = seeds[random() % seeds.size()];
    if (made.empty()) {
      made.resize(random() % 200);
      for (std::uint8_t& each : made) each = static_cast<std::uint8_t>(random() >> 8);
    }
    made = changed(made, random);
    LLVMFuzzerTestOneInput(made.data(), made.size());
  }
  std::printf("%zu files, %d others\n", files.size(), times);
  return 0;
}
