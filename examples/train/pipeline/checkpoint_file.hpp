// The file of a checkpoint: what lies where in it, and how it is opened, read and summed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config.hpp"
#include "pipeline/checkpoint.hpp"
#include "pipeline/pipeline.hpp"

namespace train {

// A line that says what it is and one of JSON; then part by part the numbers as they lie in memory.
// Behind each of these a line with its checksum, so that whoever needs a few parts reads no others.
inline constexpr std::string_view checkpoint_magic = "stretto train checkpoint 2\n";
inline constexpr std::pair<layer_part, const char*> saved_parts[] = {
    {layer_part::parameters, "parameters"},
    {layer_part::mean, "mean"},
    {layer_part::square, "square"}};

//! The line behind `of`.
std::string checksum_line(std::string_view of);

std::string_view bytes_of(std::span<const float> numbers);

//! Another name, beside the file's.
std::filesystem::path with_ending(std::filesystem::path file, const std::string& ending);

//! An open file, closed at the end.
class descriptor {
 public:
  //! @param mode  that it gets if it is made, less the umask
  descriptor(const std::filesystem::path& path, int flags, mode_t mode = 0666);
  ~descriptor();
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  bool open() const { return number_ >= 0; }
  bool write(std::string_view text) const;
  bool sync() const;
  //! Against all others, in other processes, too, until it is closed. Waits for nobody.
  bool lock() const;
  //! Whether the file still has the name.
  bool is_at(const std::filesystem::path& path) const;
  //! Its type and permissions; 0: `errno` says why not
  mode_t mode() const;
  bool set_permissions(mode_t mode) const;
  //! Of the file. -1: `errno` says why
  off_t size() const;
  //! From a place in the file. @return how many bytes there were; -1: `errno` says why
  ssize_t read(std::size_t at, std::span<char> to) const;

 private:
  int number_;
};

//! Numbers in the file, with their checksum behind them.
struct saved_part {
  int layer = 0;
  layer_part part = layer_part::parameters;
  const char* name = "";
  std::size_t at = 0, scalars = 0;

  //! "layer 3's mean"
  std::string words() const;
};

//! A checkpoint, of which no more is read than asked for.
class saved_file {
 public:
  //! @throws bad_checkpoint when it cannot be read, is none, or says of itself what is damaged
  explicit saved_file(const std::filesystem::path& path);

  const std::string& header() const { return header_; }

  //! Where the model's parts are.
  //! @throws bad_checkpoint when the file is not as long
  std::vector<saved_part> parts(const config& model) const;

  //! @throws bad_checkpoint when it is damaged
  std::vector<float> numbers(const saved_part& of) const;

  //! What is behind the numbers.
  std::string checksum(const saved_part& of) const;

 private:
  [[noreturn]] void refuse() const;
  [[noreturn]] void refuse_as_damaged(const std::string& what) const;
  std::size_t read(std::size_t at, std::span<char> to) const;

  std::filesystem::path path_;
  descriptor file_;
  std::string header_;
  std::size_t head_ = 0;  // with the line's end
};

}  // namespace train
