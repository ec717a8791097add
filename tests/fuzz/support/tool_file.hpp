#pragma once

#include <string>
#include <string_view>

#include "fuzz/support/fuzz.hpp"
#include "tool/errors.hpp"
#include "tool/files.hpp"

//! In the place of tool/files.cpp: whatever the tool reads has the text of the moment.
namespace fuzz {

inline std::string& file_text() {
  static std::string text;
  return text;
}

//! Runs what reads the file. Input that is refused is refused in words; nothing else is thrown.
template <class Reads>
void read_with(std::string_view text, const Reads& reads) {
  file_text() = text;
  try {
    reads();
  } catch (const stretto::tool::bad_input& refused) {
    require(*refused.what() == '-', "a refusal begins with the option");
  } catch (const stretto::tool::broken_schedule&) {
  }
}

}  // namespace fuzz

std::string stretto::tool::read_file(const std::string&, const std::string&) {
  return fuzz::file_text();
}
