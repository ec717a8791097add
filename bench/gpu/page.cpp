// Writes a page, Markdown, of what bench/gpu/run has left in a folder: the device, what casts doubt
// on the results, the targets and whether they are met, a table of each benchmark. Needs no GPU.
//   gpu_page FOLDER [-o FILE]
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.hpp"
#include "page_results.hpp"
#include "page_text.hpp"

int main(int count, char** arguments) {
  using namespace stretto::bench;
  std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    const std::string path = take_option(words, "-o");
    if (words.size() != 1 || words[0].empty() || words[0][0] == '-')
      throw std::invalid_argument("usage: gpu_page FOLDER [-o FILE]");
    const std::string page = page_of(results(words[0]));
    if (path.empty()) {
      std::fputs(page.c_str(), stdout);
      return 0;
    }
    std::ofstream file(path);
    file << page;
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "gpu_page: %s\n", wrong.what());
    return 1;
  }
}
