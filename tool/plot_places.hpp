#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace stretto::tool {

//! Of a picture, in pixels.
struct plot_box {
  double x, y, wide, high;

  bool meets(const plot_box& other) const {
    return x < other.x + other.wide && other.x < x + wide && y < other.y + other.high &&
           other.y < y + high;
  }
  bool holds(const plot_box& other) const {
    return other.x > x && other.x + other.wide < x + wide && other.y > y &&
           other.y + other.high < y + high;
  }
};

//! What of a plot is taken, by dots and their names, and by lines, which names avoid if they can.
struct plot_places {
  plot_box inside{};  //!< where names may stand
  std::vector<plot_box> taken{};
  std::vector<plot_box> lines{};

  //! @param avoids_lines  keeps off those, too
  bool is_free(const plot_box& place, bool avoids_lines) const {
    const auto meets = [&](const plot_box& other) { return place.meets(other); };
    return inside.holds(place) && std::none_of(taken.begin(), taken.end(), meets) &&
           !(avoids_lines && std::any_of(lines.begin(), lines.end(), meets));
  }

  //! Whether a line from a dot meets no name, and no other dot.
  bool is_clear(double x, double y, double end_x, double end_y) const {
    for (int step = 0; step <= 16; ++step) {
      const double part = step / 16.0;
      const plot_box here{x + part * (end_x - x) - 1, y + part * (end_y - y) - 1, 2, 2};
      for (const plot_box& other : taken) {
        const bool own = other.meets({x - 1, y - 1, 2, 2});
        if (!own && other.meets(here)) return false;
      }
    }
    return true;
  }
};

}  // namespace stretto::tool
