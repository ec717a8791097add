#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/assignment/table.hpp"
#include "stretto/base/scratch.hpp"

namespace stretto::assignment {

//! What a layout says: how many stages and layers, or why it is none.
struct layout_size {
  int stages = 0;
  int layers = 0;
  verdict answer{};
};

namespace detail {

//! Reads a layout once, repeating what is to be repeated.
class layout_reader {
 public:
  constexpr layout_reader(std::string_view text, std::span<std::int32_t> per_stage,
                          std::span<char> letters)
      : text_(text), per_stage_(per_stage), letters_(letters) {}

  constexpr layout_size read() {
    close_stage();
    if (const std::size_t end = sequence(0); answer_.ok() && end != text_.size())
      stop(reason::bad_layout, end);  // a ) that closes nothing
    return {stages_, layers_, answer_};
  }

 private:
  static constexpr int most = 1'000'000;
  static constexpr int deepest = 64;  // groups within groups

  constexpr void stop(reason why, std::size_t at) {
    if (answer_.ok())
      answer_ = misassigned(why, -1, static_cast<std::int64_t>(at) + 1,
                            static_cast<std::int64_t>(text_.size()));
  }
  //! What begins at `at`, up to a ) or the end of the text; where that is.
  constexpr std::size_t sequence(std::size_t at) {
    while (answer_.ok() && at < text_.size() && text_[at] != ')') {
      if (text_[at] == ',' || text_[at] == ' ') {
        ++at;
      } else {
        at = item(at);
      }
    }
    return at;
  }
  //! A layer, a bar or a group, so often as the number behind it says.
  constexpr std::size_t item(std::size_t at) {
    const bool group = text_[at] == '(';
    std::size_t end = at + 1;
    if (group) {
      for (int open = 1; open > 0; ++end) {
        if (end == text_.size()) return stop(reason::bad_layout, at), at;
        open += text_[end] == '(' ? 1 : text_[end] == ')' ? -1 : 0;
      }
    }
    if (group && ++depth_ > deepest) stop(reason::bad_layout, at);
    const std::size_t after = read_times(end);
    for (int turn = 0; turn < times_ && answer_.ok();) {
      const int times = times_;  // a group within may have its own
      if (++work_ > most) {
        stop(reason::layout_too_long, at);
      } else if (group) {
        sequence(at + 1);
      } else {
        symbol(at);
      }
      times_ = times;
      ++turn;
    }
    if (group) --depth_;
    return after;
  }
  constexpr std::size_t read_times(std::size_t at) {
    times_ = 1;
    if (at == text_.size() || text_[at] != '*') return at;
    const std::size_t first = ++at;
    std::int64_t number = 0;
    for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at) {
      number = number * 10 + (text_[at] - '0');
      if (number > most) {
        stop(reason::layout_too_long, first);
        return at;
      }
    }
    if (at == first) stop(reason::bad_layout, first - 1);
    times_ = static_cast<int>(number);
    return at;
  }
  constexpr void symbol(std::size_t at) {
    const char letter = text_[at];
    if (letter == '|') return close_stage();
    if (letter != 'E' && letter != 't' && letter != 'm' && letter != 'L')
      return stop(reason::bad_layout, at);
    if (last_ == 'L' || (letter == 'E' && layers_ > 0) || (letter == 't' && last_ == 'm'))
      return stop(reason::layout_order, at);
    last_ = letter;
    if (static_cast<std::size_t>(layers_) < letters_.size())
      letters_[static_cast<std::size_t>(layers_)] = letter;
    if (static_cast<std::size_t>(stages_) <= per_stage_.size())
      ++per_stage_[static_cast<std::size_t>(stages_ - 1)];
    ++layers_;
  }
  constexpr void close_stage() {
    if (static_cast<std::size_t>(stages_) < per_stage_.size())
      per_stage_[static_cast<std::size_t>(stages_)] = 0;
    ++stages_;
  }

  std::string_view text_;
  std::span<std::int32_t> per_stage_;
  std::span<char> letters_;
  verdict answer_{};
  int stages_ = 0;
  int layers_ = 0;
  int times_ = 1;
  int work_ = 0;
  int depth_ = 0;
  char last_ = ' ';
};

}  // namespace detail

//! Reads a layout in the text form of Megatron-LM, as in Et*3|(tt|)*29,m|L: the stages in pipeline
//! order between bars, every layer a letter (E embedding, t transformer, m multi-token prediction,
//! L head and loss), X*n for n of the same, (...)*n for n times all within, bars too; commas and
//! blanks mean nothing. Groups may stand in groups. E is the model's first layer if there is one, L
//! its last, and no t comes after an m. A stage may be empty.
//! @param per_stage takes the layers of as many stages as it has room for
//! @param letters takes the letters of as many layers as it has room for
constexpr layout_size read_layout(std::string_view text, std::span<std::int32_t> per_stage = {},
                                  std::span<char> letters = {}) {
  return detail::layout_reader(text, per_stage, letters).read();
}

//! Deals layers as a layout says, whose stages must be those of the placement. For any placement.
constexpr verdict deal_layout(std::string_view text, const placement& where,
                              std::span<layer_range> stages) {
  const layout_size size = read_layout(text);
  if (!size.answer.ok()) return size.answer;
  if (size.stages != where.stages())
    return misassigned(reason::counts_not_per_stage, -1, size.stages, where.stages());
  if (stages.size() < static_cast<std::size_t>(size.stages))
    return refuse(fault::capacity, reason::buffer_full);
  scratch<std::int32_t> counts(size.stages);
  const std::span<std::int32_t> per_stage(counts.data(), static_cast<std::size_t>(size.stages));
  (void)read_layout(text, per_stage);
  return deal_table(per_stage, where, stages, true);
}

//! A string in a template argument.
template <std::size_t Size>
struct layout_text {
  char letters[Size]{};

  constexpr layout_text(const char (&text)[Size]) {
    for (std::size_t at = 0; at < Size; ++at) letters[at] = text[at];
  }
  constexpr std::string_view view() const { return {letters, Size - 1}; }
};

//! Megatron-LM's layout, as in layout<"Et*3|(tt|)*29,m|L">.
template <layout_text Text>
struct layout {
  static constexpr std::string_view name = "layout";
  static constexpr bool leaves_empty = true;

  //! At least 1, so that a text that is no layout is refused and not taken for no assignment.
  constexpr int layers() const {
    const layout_size size = read_layout(Text.view());
    return size.layers > 0 ? size.layers : 1;
  }
  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    return deal_layout(Text.view(), where, stages);
  }
};

}  // namespace stretto::assignment
