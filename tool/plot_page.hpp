#pragma once

#include <array>
#include <cstdio>
#include <string>

#include "stretto/plan/svg_layout.hpp"
#include "stretto/plan/svg_style.hpp"

namespace stretto::tool {

// Told apart by those who see few colours (Okabe and Ito, Color Universal Design, 2008).
inline constexpr std::array<const char*, 6> plot_hues{"#0072b2", "#d55e00", "#009e73",
                                                      "#cc79a7", "#e69f00", "#56b4e9"};

inline std::string plot_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

inline double plot_text_width(const std::string& words, double size) {
  return detail::svg_layout::text_width(words, size);
}

//! One element.
//! @param look  its classes
inline std::string plot_words(double x, double y, const std::string& look, const char* anchor,
                              const std::string& what) {
  return "<text x=\"" + plot_number(x) + "\" y=\"" + plot_number(y) + "\" class=\"" + look +
         "\" text-anchor=\"" + anchor + "\">" + detail::escape_xml(what) + "</text>\n";
}

//! How a picture of this size begins, which follows the reader's light or dark theme.
//! @param title  as a reader that shows no pictures tells it
//! @param light  what has a look of its own beside text, page, grid, tick, leader, name and head
//! @param dark   what of it looks otherwise in the dark
inline std::string open_plot(double across, double down, const std::string& title,
                             const std::string& light, const std::string& dark = {}) {
  const std::string width = plot_number(across);
  const std::string height = plot_number(down);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
         "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\">\n<title>" +
         detail::escape_xml(title) +
         "</title>\n<style>\n"
         "text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#3c444d}\n"
         ".page{fill:#ffffff}.grid{stroke:#e9ecf1;fill:none}.tick{font-size:11px;fill:#57606a}"
         ".leader{stroke:#9aa3af;fill:none}"
         ".name{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}"
         ".head{font-size:16px;font-weight:bold;fill:#1b1f24}" +
         light +
         "\n@media (prefers-color-scheme:dark){text{fill:#c9d1d9}.page{fill:#15181d}"
         ".grid{stroke:#2a2f37}.tick{fill:#a9b2bc}.name{stroke:#15181d}.head{fill:#f0f3f6}" +
         dark + "}\n</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
}

}  // namespace stretto::tool
