#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace stretto::tool {

//! Whole files; std::string holds bytes. A path of "-" is standard input or output. What a file
//! held before stays until all is written (see write_whole).
//! @throws bad_input when the file cannot be read or written; `option` is named in it
std::string read_file(const std::string& option, const std::string& path);
void write_file(const std::string& option, const std::string& path, const std::string& text);
//! The same for what is too long to be held at once.
void write_file(const std::string& option, const std::string& path,
                const std::function<void(std::ostream&)>& print);

//! The same for a picture, which is SVG.
//! @throws bad_input also for a name that says that it is none
void write_svg(const std::string& option, const std::string& path, const std::string& svg);

}  // namespace stretto::tool
