// Text from files: bytes as they are, a tenth held back, batches that follow from their key.
#include <doctest/doctest.h>
#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "model/corpus.hpp"

using train::corpus;

namespace {

// A folder that goes when the test does.
struct folder {
  std::filesystem::path path;
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "stretto_corpus_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path); }

  std::filesystem::path file(const std::string& name, const std::string& content) const {
    std::ofstream(path / name, std::ios::binary) << content;
    return path / name;
  }
};

std::vector<std::uint8_t> counting(std::size_t size) {
  std::vector<std::uint8_t> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<std::uint8_t>(i % 251);
  return result;
}

}  // namespace

TEST_CASE("files are read as bytes, in order") {
  const folder here;
  std::string all(256, '\0');
  for (std::size_t i = 0; i < 256; ++i) all[i] = static_cast<char>(i);
  const std::vector<std::filesystem::path> files{here.file("one", all + "\r\n\x1a"),
                                                 here.file("empty", ""), here.file("two", all)};
  const corpus text(files, 4);
  const std::string expected = all + "\r\n\x1a" + all;
  CHECK(text.training().size() == 464);
  CHECK(text.held_back().size() == 51);
  std::string read(text.training().begin(), text.training().end());
  read.append(text.held_back().begin(), text.held_back().end());
  CHECK(read == expected);
}

TEST_CASE("unreadable and too short texts are refused by name") {
  const folder here;
  const auto refused = [](std::vector<std::filesystem::path> files, const char* culprit) {
    CHECK_THROWS_WITH_AS(corpus(files, 4), doctest::Contains(culprit), std::runtime_error);
  };
  refused({here.path / "absent"}, "absent': No such file");
  refused({here.path}, "it is a directory");
  refused({here.file("short", "0123456789")},
          "short' has 10 bytes, a context of 4 needs at least 50");
  refused({here.file("a", "12"), here.file("b", "34")}, "2 files");
  refused({here.file("empty", "")}, "has 0 bytes");
  CHECK_THROWS_AS(corpus(std::vector<std::filesystem::path>{}, 4), std::invalid_argument);
  CHECK_THROWS_WITH_AS(corpus(counting(100), 0), doctest::Contains("context is 0"),
                       std::invalid_argument);
  CHECK_THROWS_AS(corpus(counting(49), 4), std::runtime_error);
  CHECK_NOTHROW(corpus(counting(50), 4));
}

TEST_CASE("no more is read than there may be: a device has no end") {
  const folder here;
  const std::string some(600, 'a');
  const std::vector<std::filesystem::path> two{here.file("one", some), here.file("two", some)};
  CHECK_NOTHROW(corpus(two, 4, 1200));
  CHECK_THROWS_WITH_AS(corpus(two, 4, 1199),
                       doctest::Contains("two': with it the text has more than 1199 bytes"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(
      corpus(std::vector<std::filesystem::path>{"/dev/zero"}, 4, 1 << 20),
      doctest::Contains("'/dev/zero': with it the text has more than 1048576 bytes"),
      std::runtime_error);
}

TEST_CASE("a batch follows from its key, and targets are the next bytes") {
  const corpus text(counting(2000), 8);
  std::vector<std::uint8_t> tokens(32), targets(32), again(32), other(32);
  text.batch(1, 2, 3, tokens, targets);
  for (std::size_t i = 0; i < 32; ++i) CHECK(targets[i] == (tokens[i] + 1) % 251);
  text.batch(1, 2, 3, again, targets);
  CHECK(again == tokens);
  for (const auto& [seed, step, microbatch] : {std::tuple{2, 2, 3}, {1, 3, 3}, {1, 2, 4}}) {
    text.batch(static_cast<unsigned>(seed), step, microbatch, other, targets);
    CHECK(other != tokens);
  }
  CHECK_THROWS_WITH_AS(text.batch(1, 1, 1, std::span(tokens).first(30), targets),
                       doctest::Contains("30 tokens"), std::invalid_argument);
}

TEST_CASE("training never sees the held-back part, and reaches all of its own") {
  std::vector<std::uint8_t> bytes(300, 0);
  for (std::size_t i = 0; i < 270; ++i) bytes[i] = static_cast<std::uint8_t>(i < 250 ? 1 + i : 251);
  for (std::size_t i = 250; i < 270; ++i) bytes[i] = 252;
  bytes[269] = 253;
  const corpus text(bytes, 8);
  std::vector<std::uint8_t> tokens(64), targets(64);
  std::vector<bool> seen(256);
  for (int step = 0; step < 500; ++step) {
    text.batch(1, step, 0, tokens, targets);
    for (const std::uint8_t target : targets) seen[target] = true;
    seen[tokens[0]] = true;
  }
  CHECK_FALSE(seen[0]);  // all of the held-back part is zero
  CHECK(seen[1]);        // the first byte
  CHECK(seen[253]);      // the last one
}

TEST_CASE("held-back batches go through all sequences and start again") {
  const corpus text(counting(330), 8);
  REQUIRE(text.held_back().size() == 33);
  REQUIRE(text.held_back_sequences() == 4);
  std::vector<std::uint8_t> tokens(24), targets(24);
  std::vector<std::uint8_t> starts;
  for (int microbatch = 0; microbatch < 4; ++microbatch) {
    text.held_back_batch(microbatch, tokens, targets);
    for (std::size_t i = 0; i < 24; i += 8) starts.push_back(tokens[i]);
    CHECK(targets[0] == (tokens[0] + 1) % 251);
  }
  const auto first = static_cast<std::uint8_t>(297 % 251);
  for (std::size_t i = 0; i < 12; ++i) CHECK(starts[i] == first + 8 * (i % 4));
}
