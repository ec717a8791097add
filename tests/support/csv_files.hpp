#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/plan/csv.hpp"

//! The files of tests/tool/csv and tests/tool/csv_invalid.
namespace csv_files {

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::filesystem::path> files(std::string_view folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(STRETTO_CSV_DIR "/") + std::string(folder)))
    if (entry.path().extension() == ".csv") found.push_back(entry.path());
  return found;
}

//! What the rules say of a file's text.
inline stretto::csv_fault accept(std::string_view text,
                                 stretto::csv_cells cells = stretto::csv_cells::pytorch) {
  const stretto::csv_result read = stretto::read_csv(text, cells);
  if (!read.answer.ok()) return read.answer;
  const stretto::placement where = read.schedule.where();
  return stretto::verify(read.schedule, stretto::job_table(where.ranks, where.chunks).view());
}

}  // namespace csv_files
