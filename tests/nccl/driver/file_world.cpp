#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "world.hpp"

namespace stretto::test::nccl {

namespace {

namespace files = std::filesystem;

//! @param parts  numbers, with a dash before each
template <class... Part>
std::string name(const char* what, Part... parts) {
  std::string made = what;
  ((made += '-' + std::to_string(parts)), ...);
  return made;
}

template <class Element>
void sum_up(const std::string& from, void* to, std::size_t count, bool first) {
  for (std::size_t at = 0; at < count; ++at) {
    Element one;
    std::memcpy(&one, from.data() + at * sizeof one, sizeof one);
    Element& total = static_cast<Element*>(to)[at];
    total = first ? one : total + one;
  }
}

//! Every file is there as a whole or not at all. Numbers count what has begun, which is in the same
//! order at both ends, as in NCCL.
class file_world : public world {
 public:
  explicit file_world(files::path folder) : folder_(std::move(folder)) {
    files::create_directories(folder_);
  }

  bool join(int rank, int device) override {
    write(name("rank", rank), std::to_string(device));
    // Whoever comes later sees it.
    for (const auto& each : files::directory_iterator(folder_)) {
      const std::string other = each.path().filename().string();
      if (other.starts_with("rank-") && other != name("rank", rank) &&
          read(other) == std::to_string(device))
        return false;
    }
    return true;
  }
  int ranks() const override {
    int count = 0;
    for (const auto& each : files::directory_iterator(folder_))
      count += each.path().filename().string().starts_with("rank-") ? 1 : 0;
    return count;
  }

  work send(int from, int to, const void* data, std::size_t bytes) override {
    std::string file;
    return [=, this]() mutable {
      if (file.empty()) {
        file = name("message", from, to, sent_[{from, to}]++);
        write(file, {static_cast<const char*>(data), bytes});
      }
      return !exists(file);
    };
  }
  work receive(int from, int to, void* data, std::size_t bytes) override {
    std::string file;
    return [=, this]() mutable {
      if (file.empty()) file = name("message", from, to, received_[{from, to}]++);
      if (!exists(file)) return false;
      const std::string message = read(file);
      if (message.size() != bytes) complain_of_sizes();
      std::memcpy(data, message.data(), std::min(bytes, message.size()));
      files::remove(folder_ / file);
      return true;
    };
  }
  work all_reduce(int rank, int size, void* data, std::size_t count,
                  ncclDataType_t type) override {
    return sum(rank, size, data, count, type, 0, count);
  }
  work reduce_scatter(int rank, int size, void* data, std::size_t part,
                      ncclDataType_t type) override {
    return sum(rank, size, data, part * static_cast<std::size_t>(size), type,
               part * static_cast<std::size_t>(rank), part);
  }
  work all_gather(int rank, int size, void* data, std::size_t bytes) override {
    int number = -1;
    return [=, this]() mutable {
      const auto part = [&](int of) {
        return static_cast<char*>(data) + static_cast<std::size_t>(of) * bytes;
      };
      if (number < 0) {
        number = gathered_[rank]++;
        write(name("gather", number, rank), {part(rank), bytes});
        if (number > 1) files::remove(folder_ / name("gather", number - 2, rank));
      }
      for (int other = 0; other < size; ++other)
        if (!exists(name("gather", number, other))) return false;
      for (int other = 0; other < size; ++other) {
        const std::string theirs = read(name("gather", number, other));
        if (theirs.size() != bytes) complain_of_sizes();
        std::copy_n(theirs.begin(), std::min(bytes, theirs.size()), part(other));
      }
      return true;
    };
  }

 private:
  //! Of `count` elements the rank gets `length`, from `begin` on.
  work sum(int rank, int size, void* data, std::size_t count, ncclDataType_t type,
           std::size_t begin, std::size_t length) {
    int number = -1;
    return [=, this]() mutable {
      const std::size_t width = type == ncclDouble ? sizeof(double) : sizeof(float);
      if (number < 0) {
        number = summed_[rank]++;
        write(name("sum", number, rank), {static_cast<const char*>(data), count * width});
        // Everyone has read the one before, or would not be here.
        if (number > 1) files::remove(folder_ / name("sum", number - 2, rank));
      }
      for (int other = 0; other < size; ++other)
        if (!exists(name("sum", number, other))) return false;
      char* const own = static_cast<char*>(data) + begin * width;
      for (int other = size; other-- > 0;) {
        const std::string summands = read(name("sum", number, other));
        if (summands.size() != count * width) complain_of_sizes();
        const std::string summand = summands.substr(std::min(begin * width, summands.size()));
        const std::size_t here = std::min(length, summand.size() / width);
        const bool first = other + 1 == size;
        type == ncclDouble ? sum_up<double>(summand, own, here, first)
                           : sum_up<float>(summand, own, here, first);
      }
      return true;
    };
  }
  bool exists(const std::string& file) const {
    std::error_code ignored;
    return files::exists(folder_ / file, ignored);
  }
  std::string read(const std::string& file) const {
    std::ifstream from(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(from), {}};
  }
  void write(const std::string& file, const std::string& bytes) const {
    const files::path part = folder_ / (name("part", getpid()) + file);
    std::ofstream(part, std::ios::binary) << bytes;
    files::rename(part, folder_ / file);
  }

  files::path folder_;
  std::map<std::pair<int, int>, int> sent_{}, received_{};
  std::map<int, int> summed_{};    // by rank
  std::map<int, int> gathered_{};  // by rank
};

}  // namespace

std::shared_ptr<world> make_file_world(const std::filesystem::path& folder) {
  return std::make_shared<file_world>(folder);
}

}  // namespace stretto::test::nccl
