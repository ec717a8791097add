#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/picture.hpp"
#include "stretto/plan/svg_palette.hpp"
#include "stretto/plan/svg_style.hpp"

namespace stretto::detail {

//! Where everything of a picture lies, in pixels.
class svg_layout {
 public:
  static constexpr double lane_height = 26;
  static constexpr double narrow_height = 9;
  static constexpr double letter = 0.62;  // width of a character over the font size, at most
  static constexpr double least_font = 6.5, most_font = 11;  // of labels

  static constexpr double swatch = 12;

  //! An entry of the legend: boxes that stand together, and what they mean.
  struct entry {
    struct box {
      std::string look;     // attributes
      std::string words{};  // inside
      const char* ink = "dark";
    };
    std::vector<box> boxes;
    std::string words;
    double indent() const {
      return boxes.empty() ? 0 : swatch * static_cast<double>(boxes.size()) + 6;
    }
    double width() const { return indent() + text_width(words, 12) + 14; }
  };

  explicit svg_layout(const timeline_picture& picture) : in_(picture) {
    measure_bars();
    measure_memory();
    name_entries();
    lay_out_across();
    size_labels();
    lay_out_down();
  }

  static double text_width(std::string_view words, double size) {
    return letter * size * static_cast<double>(words.size());
  }
  //! The micro-batch and, where there are slices, which of them: 3, 3.1.
  std::string label(const job& work) const {
    const std::string slice = sliced_ ? "." + std::to_string(work.slice) : "";
    return std::to_string(work.microbatch) + slice;
  }
  colour colour_of(job_kind kind, int chunk) const { return colours_.of(kind, chunk); }

  bool is_narrow(int lane) const {
    return !in_.lanes.empty() && in_.lanes[static_cast<std::size_t>(lane)].narrow;
  }
  bool is_labelled(const picture_bar& bar) const {
    return !is_narrow(bar.rank) && (in_.lanes.empty() || is_compute(bar.what.kind));
  }
  //! By its own length; the font is for most bars, and may be too large for some.
  bool fits(const picture_bar& bar) const { return room_for(bar) >= font - 1e-6; }
  double height_of(int lane) const { return is_narrow(lane) ? narrow_height : lane_height; }
  double x_of(std::int64_t time) const { return left + scale * static_cast<double>(time); }
  double y_of(int lane) const { return tops_[static_cast<std::size_t>(lane)]; }
  //! The ground of a rank's memory.
  double floor_of(int rank) const { return floors_[static_cast<std::size_t>(rank)]; }
  //! A memory level's height above it.
  double rise_of(std::int64_t level) const {
    const auto span = static_cast<double>(std::max<std::int64_t>(1, most_ - least_));
    return strip * static_cast<double>(level - least_) / span;
  }
  //! Where entry after entry of the legend goes: goes on, or begins a line.
  bool breaks_line(double x, const entry& next) const {
    return x + next.width() > width - 16 && x > 16;
  }

  std::map<job_kind, std::set<int>> chunks_of;  // the picture's kinds, in which chunks each
  std::vector<entry> entries;                   // of the legend
  std::size_t digits = 1;                       // of the longest label
  int chunks = 1;
  std::int64_t shortest = 1;  // of the bars that are there to be read, at least 1
  double font = most_font;    // of labels
  double left = 0, plot = 0, scale = 1, width = 0, height = 0, bottom = 0, strip = 0;

 private:
  void measure_bars() {
    for (const picture_bar& bar : in_.bars) sliced_ = sliced_ || bar.what.slice > 0;
    std::set<job_kind> kinds;
    std::vector<std::int64_t> lengths;
    for (const picture_bar& bar : in_.bars) {
      kinds.insert(bar.what.kind);
      chunks_of[bar.what.kind].insert(bar.chunk);
      if (!is_labelled(bar)) continue;
      lengths.push_back(std::max<std::int64_t>(1, bar.when.end - bar.when.start));
      digits = std::max(digits, label(bar.what).size());
      chunks = std::max(chunks, bar.chunk + 1);
    }
    colours_ = palette(kinds, chunks);
    shortest = shortest_read(std::move(lengths));
  }
  //! The shortest but for those below half of the median: a few narrow jobs make no picture wide.
  std::int64_t shortest_read(std::vector<std::int64_t> lengths) const {
    if (lengths.empty()) return std::max<std::int64_t>(1, in_.end);
    // The lower one: of a forward and a backward for each micro-batch, the forwards count.
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    const std::int64_t median = *middle;
    std::int64_t least = median;
    for (const std::int64_t length : lengths)
      if (length >= median - length) least = std::min(least, length);
    return least;
  }
  //! The font size at which the bar's label fills it.
  double room_for(const picture_bar& bar) const {
    return (scale * static_cast<double>(bar.when.end - bar.when.start) - 2) /
           text_width(label(bar.what), 1);
  }
  //! What fits all bars that are there to be read and have room for some label.
  void size_labels() {
    for (const picture_bar& bar : in_.bars) {
      if (!is_labelled(bar) || bar.when.end - bar.when.start < shortest) continue;
      if (const double room = room_for(bar); room >= least_font) font = std::min(font, room);
    }
  }
  void measure_memory() {
    for (const auto& line : in_.memory)
      for (const memory_point& point : line) {
        most_ = std::max(most_, point.level);
        least_ = std::min(least_, point.level);
      }
    strip = in_.memory.empty() ? 0 : 22;
  }
  void name_entries() {
    constexpr std::size_t most = 8;  // boxes of a kind
    for (const auto& [kind, there] : chunks_of) {
      const bool by_chunk = chunks > 1 && is_compute(kind);
      std::string named(legend_of(kind));
      if (is_compute(kind) || in_.lanes.empty()) named = std::string(letters(kind)) + " " + named;
      if (!entries.empty() && entries.back().words == named) continue;
      entry made{{}, named};
      for (int chunk : there) {
        if (made.boxes.size() == (by_chunk ? most : 1)) break;
        const colour fill = colour_of(kind, chunk);
        made.boxes.push_back(
            {"fill=\"" + fill.hex() + "\"", by_chunk ? std::to_string(chunk) : "", ink_on(fill)});
      }
      if (by_chunk && there.size() > most) made.words.insert(0, "... ");
      entries.push_back(std::move(made));
    }
    if (chunks > 1) entries.push_back({{}, "numbered by " + in_.shades});
    entries.push_back({{{"class=\"lane\""}}, "idle"});
    if (!in_.path.empty()) entries.push_back({{{"class=\"path\""}}, "critical path"});
    if (!in_.memory.empty()) entries.push_back({{{"class=\"curve\""}}, "memory"});
  }

  void lay_out_across() {
    left = 16 + text_width("rank " + std::to_string(std::max(0, in_.ranks - 1)), 12);
    for (const picture_lane& one : in_.lanes)
      left = std::max(left, 16 + text_width(one.name, one.narrow ? 9 : 12));
    // The last tick's label is centred on the end of the axis.
    double right = std::max(24.0, 8 + text_width(std::to_string(in_.end / in_.parts), 11) / 2);
    if (!in_.memory.empty())
      right = std::max(right, 24 + text_width("peak " + std::to_string(most_), 10));
    // Wide enough for any micro-batch in all but a few jobs, within what a page can show.
    const auto units = static_cast<double>(std::max<std::int64_t>(1, in_.end));
    const double labelled = static_cast<double>(digits) * letter * most_font + 5;
    const double wanted = labelled / static_cast<double>(shortest) * units;
    double legend_width = 32;
    for (const entry& one : entries) legend_width += one.width();
    const double least =
        std::max({560.0, text_width(in_.title, 16) + 40 - left,
                  text_width(in_.subtitle, 12) + 40 - left, std::min(legend_width, 900.0) - left});
    plot = std::clamp(wanted, least, std::max(least, 2400.0));
    scale = plot / units;
    width = left + plot + right;
  }

  void lay_out_down() {
    int legend_rows = 1;
    double x = 16;
    for (const entry& one : entries) {
      if (breaks_line(x, one)) {
        ++legend_rows;
        x = 16;
      }
      x += one.width();
    }
    double y = 58 + 20 * legend_rows;
    const int lanes = in_.ranks;
    for (int lane = 0; lane < lanes; ++lane) {
      tops_.push_back(y);
      y += height_of(lane);
      const bool closes = in_.lanes.empty() || lane + 1 == lanes ||
                          in_.lanes[static_cast<std::size_t>(lane) + 1].opens;
      if (closes && strip > 0) floors_.push_back(y += 4 + strip);
      if (in_.lanes.empty())
        y += strip > 0 ? 8 : 6;
      else if (lane + 1 == lanes)
        y += 6;
      else
        y += closes ? 14 : 2;
    }
    bottom = y;
    height = bottom + 44;
  }

  const timeline_picture& in_;
  palette colours_{{}, 1};
  bool sliced_ = false;
  std::int64_t most_ = 0;
  std::int64_t least_ = 0;
  std::vector<double> tops_;    // of the lanes
  std::vector<double> floors_;  // of the ranks' memory
};

}  // namespace stretto::detail
