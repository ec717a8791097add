#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/csv_schedule.hpp"
#include "stretto/plan/csv_stages.hpp"

namespace stretto {

namespace detail {

//! Lines without their CRLF or LF. The end of the last line is not a line of its own.
inline std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r' && end < text.size()) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

//! Of a cell that a spreadsheet has put in quotes what is between them; no action has any.
inline std::string_view unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
  return trim(text.substr(1, text.size() - 2));
}

//! Reads a file row by row. Numbers are held against what the file can hold before anything is
//! sized by them.
class csv_reader {
 public:
  explicit csv_reader(csv_cells cells) : cells_(cells) {}

  csv_result read(std::string_view text) {
    const auto lines = split_lines(text);
    if (lines.empty()) fail(fault::syntax, reason::empty_row);
    for (std::size_t row = 0; row < lines.size() && answer_.ok(); ++row)
      read_row(static_cast<int>(row), lines[row]);
    if (answer_.ok()) find_stages();
    if (answer_.ok()) fill();
    return {answer_.ok() ? std::move(made_) : imported_schedule{}, answer_};
  }

 private:
  struct found_cell {
    int rank = -1;
    int cell = -1;
    job work{};
  };

  void fail(fault what, reason why, int row = -1, int cell = -1, std::string_view text = {}) {
    answer_ = {.what = refuse(what, why),
               .row = row + 1,
               .cell = cell + 1,
               .text = std::string(text.substr(0, 80))};
    answer_.what.rank = row;
  }

  void read_row(int row, std::string_view line) {
    rows_.emplace_back();
    made_.texts.emplace_back();
    for (int cell = 0;; ++cell) {
      const std::size_t end = std::min(line.find(','), line.size());
      const std::string_view text = unquoted(trim(line.substr(0, end)));
      made_.texts.back().emplace_back(text);
      if (text.empty()) {
        if (first_empty_.rank < 0) first_empty_ = {row, cell, {}};
      } else {
        const parsed_action read = parse_action(text);
        if (!read.answer.ok()) return fail(fault::syntax, read.answer.why, row, cell, text);
        for (const job& work : read.jobs) {
          if (!has_form(work, cells_)) return fail(fault::syntax, reason::no_form, row, cell, text);
          made_.beyond_pytorch = made_.beyond_pytorch || !has_pytorch_form(work);
          if (!has_cost(work.kind) && first_comms_.rank < 0) first_comms_ = {row, cell, work};
          rows_.back().push_back({work, cell + 1});
        }
      }
      if (end == line.size()) break;
      line.remove_prefix(end + 1);
    }
    if (rows_.back().empty()) fail(fault::syntax, reason::empty_row, row);
  }

  //! Where each stage lies, and that none, and no micro-batch or slice of it, is missing.
  void find_stages() {
    csv_stages stages(rows_, cells_ == csv_cells::all);
    if (const verdict found = stages.find(); !found.ok()) return misses(found);
    made_.stage_to_rank = stages.homes();
    made_.two_directions = stages.two_directions();
    made_.chunks = stages.chunks_one_way();
    made_.beyond_pytorch = made_.beyond_pytorch || made_.two_directions;
    made_.microbatches = stages.microbatches();
    made_.slices = stages.slices();
    find_format();
    if (!answer_.ok()) return;
    if (const verdict found = stages.complete(); !found.ok()) misses(found);
  }

  //! Communication makes a file compute_comms. Where a rank that lives on its neighbours' messages
  //! has none at all, the file is compute_only and the communication is what is wrong.
  void find_format() {
    if (first_comms_.rank < 0) return;
    std::vector<bool> talks(rows_.size());
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (const csv_job& one : rows_[rank])
        if (is_message(one.work.kind)) talks[rank] = true;
    for (std::size_t stage = 0; stage + 1 < made_.stage_to_rank.size(); ++stage) {
      const auto from = static_cast<std::size_t>(made_.stage_to_rank[stage]);
      const auto to = static_cast<std::size_t>(made_.stage_to_rank[stage + 1]);
      if (from == to || (talks[from] && talks[to])) continue;
      fail(fault::rendezvous, reason::unexpected_communication, first_comms_.rank,
           first_comms_.cell, to_text(first_comms_.work));
      return;
    }
    made_.format = csv_format::compute_comms;
    if (first_empty_.rank >= 0)
      fail(fault::syntax, reason::bad_token, first_empty_.rank, first_empty_.cell);
  }

  //! Of a job that shows it, or of what is asked for by none.
  void misses(const verdict& what) {
    answer_ = {.what = what, .row = what.rank + 1};
    if (what.step < 0) return;
    const auto rank = static_cast<std::size_t>(what.rank);
    answer_.cell = rows_[rank][static_cast<std::size_t>(what.step)].cell;
    answer_.text = made_.texts[rank][static_cast<std::size_t>(answer_.cell) - 1];
  }

  void fill() {
    std::size_t longest = 0;
    for (const auto& row : rows_) longest = std::max(longest, row.size());
    made_.lists = job_lists(static_cast<int>(rows_.size()), static_cast<int>(longest));
    auto sink = made_.lists.sink();
    made_.cells.resize(rows_.size());
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (const auto& [work, cell] : rows_[rank]) {
        sink.push(static_cast<int>(rank), work);
        made_.cells[rank].push_back(cell);
      }
    if (made_.two_directions) return;
    made_.chunks = 1;
    std::vector<int> held(rows_.size());
    for (std::int32_t rank : made_.stage_to_rank)
      made_.chunks = std::max(made_.chunks, ++held[static_cast<std::size_t>(rank)]);
  }

  imported_schedule made_;
  csv_fault answer_;
  csv_cells cells_;
  csv_rows rows_;
  found_cell first_empty_;
  found_cell first_comms_;
};

}  // namespace detail

//! A file's text without the mark with which spreadsheets begin what is UTF-8.
constexpr std::string_view without_mark(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return text.substr(0, mark.size()) == mark ? text.substr(mark.size()) : text;
}

//! Reads a schedule, strictly: every cell a whole action that `cells` has, every row a rank with
//! work, every stage on one rank, or, where all may be said, each on two (placement_kind::
//! bidirectional). CRLF and LF both end a row. A file with messages, gathers or reductions is
//! compute_comms. Does not say whether the schedule is valid: see `verify`.
inline csv_result read_csv(std::string_view text, csv_cells cells = csv_cells::pytorch) {
  return detail::csv_reader(cells).read(text);
}

}  // namespace stretto
