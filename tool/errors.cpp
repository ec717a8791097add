#include "errors.hpp"

namespace stretto::tool {

std::string shown(const std::string& words) {
  std::string text;
  for (const char letter : words) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '\n') {
      text += ' ';
    } else if (code < 0x20 || code == 0x7f) {
      text += "\\x";
      for (const int digit : {code / 16, code % 16}) text += "0123456789abcdef"[digit];
    } else {
      text += letter;
    }
  }
  return text;
}

std::string shell_word(const std::string& word) {
  constexpr const char* plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : shown(word)) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

}  // namespace stretto::tool
