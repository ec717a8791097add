#include "errors.hpp"

#include <cstddef>

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

std::string in_brief(std::string words, const std::vector<std::string>& typed) {
  constexpr std::size_t most = 300;  // more than the path of a file mostly has
  const auto cut = [&](const std::string& value) {
    if (value.size() <= most) return;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0) == 0x80) --end;  // UTF-8
    const std::string begin = value.substr(0, end) + "...";
    for (std::size_t at = words.find(value); at != std::string::npos;
         at = words.find(value, at + begin.size()))
      words.replace(at, value.size(), begin);
  };
  for (const std::string& one : typed) {
    const std::string word = shown(one);
    cut(word);
    // Of --option=value, and of NAME:option=value.
    for (const char mark : {'=', ':'})
      if (const std::size_t at = word.find(mark); at != std::string::npos) cut(word.substr(at + 1));
  }
  return words;
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
