#include "stretto/plan/svg_palette.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace {

using stretto::job_kind;
using stretto::detail::colour;
using stretto::detail::contrast;
using stretto::detail::palette;

struct tone {
  job_kind kind;
  int chunk;
  colour fill;
};

std::vector<tone> tones(const std::set<job_kind>& kinds, int chunks) {
  const palette colours(kinds, chunks);
  std::vector<tone> made;
  for (job_kind kind : kinds)
    for (int chunk = 0; chunk < chunks; ++chunk)
      made.push_back({kind, chunk, colours.of(kind, chunk)});
  return made;
}

//! How far from yellow to blue it looks to deuteranopes, who are left with that and lightness: of
//! -1 ... 1 (Machado, Oliveira and Fernandes 2009, severity 1).
double blue_to_deuteranopes(const colour& fill) {
  const auto linear = [](int part) { return std::pow(part / 255.0, 2.2); };
  const double red = linear(fill.red), green = linear(fill.green), blue = linear(fill.blue);
  const double yellow = 0.5 * (0.367322 * red + 0.860646 * green - 0.227968 * blue) +
                        0.5 * (0.280085 * red + 0.672501 * green + 0.047413 * blue);
  const double seen = -0.011820 * red + 0.042940 * green + 0.968881 * blue;
  return (seen - yellow) / std::max(seen, yellow);
}

// What pictures of schedules hold, with recomputation and without.
const std::set<job_kind> pictures[] = {
    {job_kind::forward},
    {job_kind::forward, job_kind::backward},
    {job_kind::forward, job_kind::backward_input, job_kind::backward_weight},
    {job_kind::forward, job_kind::backward, job_kind::backward_input, job_kind::backward_weight},
    {job_kind::forward, job_kind::backward, job_kind::recompute},
    {job_kind::forward, job_kind::backward_input, job_kind::backward_weight, job_kind::recompute}};

TEST_CASE(
    "in grey every chunk of every kind differs from every other, and from where a rank is idle") {
  const colour idle[] = {{0xe9, 0xec, 0xf1}, {0x2a, 0x2f, 0x37}};  // on a light page, on a dark one
  for (const auto& kinds : pictures)
    for (const int chunks : {1, 2}) {
      const auto all = tones(kinds, chunks);
      for (const tone& one : all) {
        CAPTURE(one.fill.hex());
        for (const colour& ground : idle) CHECK(contrast(one.fill, ground) > 1.25);
        for (const tone& other : all)
          if (one.kind != other.kind || one.chunk != other.chunk)
            CHECK(contrast(one.fill, other.fill) > 1.25);
      }
    }
}

TEST_CASE("no chunk of one kind is as light as one of another, however many chunks") {
  for (const auto& kinds : pictures) {
    auto all = tones(kinds, 16);
    std::sort(all.begin(), all.end(), [](const tone& one, const tone& other) {
      return one.fill.luminance() > other.fill.luminance();
    });
    std::size_t changes = 0;
    for (std::size_t at = 1; at < all.size(); ++at) changes += all[at].kind != all[at - 1].kind;
    CHECK(changes == kinds.size() - 1);
  }
}

TEST_CASE("kinds next to each other in lightness are of two hues to deuteranopes") {
  for (const auto& kinds : pictures)
    for (const int chunks : {1, 2}) {
      auto all = tones(kinds, chunks);
      std::sort(all.begin(), all.end(), [](const tone& one, const tone& other) {
        return one.fill.luminance() > other.fill.luminance();
      });
      for (std::size_t at = 1; at < all.size(); ++at) {
        CAPTURE(all[at - 1].fill.hex());
        CAPTURE(all[at].fill.hex());
        if (all[at].kind != all[at - 1].kind)
          CHECK(std::abs(blue_to_deuteranopes(all[at].fill) -
                         blue_to_deuteranopes(all[at - 1].fill)) > 0.5);
      }
    }
}

TEST_CASE("what is written on a job is read: WCAG's 4.5 to 1") {
  for (const auto& kinds : pictures)
    for (const int chunks : {1, 2, 3, 8})
      for (const tone& one : tones(kinds, chunks)) {
        const colour ink =
            std::string(ink_on(one.fill)) == "dark" ? colour{0, 0, 0} : colour{255, 255, 255};
        CHECK(contrast(one.fill, ink) >= 4.5);
      }
}

TEST_CASE("luminance and contrast are those of WCAG") {
  const colour white{255, 255, 255}, black{0, 0, 0}, green{0x45, 0xac, 0x81};
  CHECK(contrast(white, black) == doctest::Approx(21));
  CHECK(contrast(white, green) == doctest::Approx(2.8).epsilon(0.02));
  for (const double wanted : {0.0, 0.1, 0.5, 1.0})
    CHECK(green.with_luminance(wanted).luminance() == doctest::Approx(wanted).epsilon(0.02));
}

}  // namespace
