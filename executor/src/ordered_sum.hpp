#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace stretto::executor {

//! Who gets what the members of a group sum.
enum class sum_to : std::uint8_t {
  all,            //!< every member all of it
  each_its_part,  //!< no member more than its own part
};

//! Where the part of a member begins, in elements, when the members of a group share out the
//! elements that they sum. The part of member `count` would begin at the end.
template <class Element>
std::int64_t part_begin(sum_to whom, std::size_t member, std::size_t count, std::int64_t elements) {
  const auto part = static_cast<std::int64_t>(member), parts = static_cast<std::int64_t>(count);
  // What each keeps is of one size: validate() refuses others.
  if (whom == sum_to::each_its_part) return part * (elements / parts);
  // Else parts are whole cache lines, so that members do not write to one another's.
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(Element));
  const std::int64_t lines = (elements + line - 1) / line;
  return std::min(elements, lines * part / parts * line);
}

//! Sums `length` elements of all members in the order of their ranks: the same bits whoever does
//! it.
//! @param from  from(k): the elements of the k-th member, a const Element*
template <class Element, class From>
void ordered_sum(std::size_t members, From from, std::int64_t length, Element* sum) {
  std::copy_n(from(0), length, sum);
  for (std::size_t other = 1; other < members; ++other) {
    const Element* theirs = from(other);
    for (std::int64_t each = 0; each < length; ++each) sum[each] += theirs[each];
  }
}

}  // namespace stretto::executor
