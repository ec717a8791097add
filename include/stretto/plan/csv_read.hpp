#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/csv_schedule.hpp"

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

//! Reads a file row by row. Numbers are held against what the file can hold before anything is
//! sized by them.
class csv_reader {
 public:
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
  struct placed_job {
    job work;
    int cell;
  };

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
      const std::string_view text = trim(line.substr(0, end));
      made_.texts.back().emplace_back(text);
      if (text.empty()) {
        if (first_empty_.rank < 0) first_empty_ = {row, cell, {}};
      } else {
        const parsed_action read = parse_action(text);
        if (!read.answer.ok()) return fail(fault::syntax, read.answer.why, row, cell, text);
        for (const job& work : read.jobs) {
          if (!has_pytorch_form(work)) return fail(fault::syntax, reason::no_form, row, cell, text);
          if (!is_compute(work.kind) && first_comms_.rank < 0) first_comms_ = {row, cell, work};
          rows_.back().push_back({work, cell + 1});
        }
      }
      if (end == line.size()) break;
      line.remove_prefix(end + 1);
    }
    if (rows_.back().empty()) fail(fault::syntax, reason::empty_row, row);
  }

  //! Where each stage is computed, how many micro-batches there are, and that no stage is missing.
  void find_stages() {
    // A stage is where most of its jobs are: one that is mistyped must not move it.
    struct jobs_of_rank {
      std::int64_t count = 0;
      job first{};
    };
    std::unordered_map<std::int32_t, std::map<int, jobs_of_rank>> by_rank;
    std::int64_t forwards = 0;
    std::int64_t microbatches = 0;
    std::int64_t stages = 0;
    for (int rank = 0; rank < static_cast<int>(rows_.size()); ++rank)
      for (const auto& [work, cell] : rows_[static_cast<std::size_t>(rank)]) {
        if (!is_compute(work.kind)) continue;
        forwards += work.kind == job_kind::forward;
        microbatches = std::max<std::int64_t>(microbatches, std::int64_t{1} + work.microbatch);
        stages = std::max<std::int64_t>(stages, std::int64_t{1} + work.stage);
        jobs_of_rank& there = by_rank[work.stage][rank];
        if (there.count++ == 0) there.first = work;
      }
    std::unordered_map<std::int32_t, std::pair<int, job>> home;
    for (const auto& [stage, ranks] : by_rank) {
      const auto most = std::max_element(ranks.begin(), ranks.end(), [](auto& one, auto& other) {
        return one.second.count < other.second.count;
      });
      home[stage] = {most->first, most->second.first};
    }
    for (int rank = 0; rank < static_cast<int>(rows_.size()); ++rank) {
      const auto& jobs = rows_[static_cast<std::size_t>(rank)];
      for (std::size_t step = 0; step < jobs.size(); ++step) {
        const job& work = jobs[step].work;
        if (!is_compute(work.kind)) continue;
        if (const auto& [there, known] = home.at(work.stage); there != rank)
          return stray(refuse(fault::incomplete, reason::wrong_rank, rank, static_cast<int>(step),
                              work, known));
      }
    }
    for (std::int32_t stage = 0; stage < stages; ++stage) {
      if (home.contains(stage)) continue;
      return asked_for({stage, 0, 0, job_kind::forward},
                       [&](const job& work) { return work.stage > stage; });
    }
    if (stages == 0) return missing({0, 0, 0, job_kind::forward}, -1);
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (std::size_t step = 0; step < rows_[rank].size(); ++step)
        if (rows_[rank][step].work.stage >= stages)
          return stray(refuse(fault::incomplete, reason::out_of_range, static_cast<int>(rank),
                              static_cast<int>(step), rows_[rank][step].work));
    for (std::int32_t stage = 0; stage < stages; ++stage)
      made_.stage_to_rank.push_back(home.at(stage).first);
    find_format();
    if (!answer_.ok()) return;
    made_.microbatches = static_cast<int>(
        std::min<std::int64_t>(microbatches, std::numeric_limits<std::int32_t>::max()));
    // Too few forwards for that many micro-batches: say which is missing here, because the checks
    // would first set aside memory for all of them.
    if (forwards < stages * microbatches && !find_stray(microbatches)) first_gap();
  }

  //! Communication makes a file compute_comms. Where a rank that lives on its neighbours' messages
  //! has none at all, the file is compute_only and the communication is what is wrong.
  void find_format() {
    if (first_comms_.rank < 0) return;
    std::vector<bool> talks(rows_.size());
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (const placed_job& one : rows_[rank])
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

  //! A number that is mistyped makes a stage or a micro-batch of which next to nothing is there.
  //! @return whether there is one with less than half of its forwards; its first job is then named
  bool find_stray(std::int64_t microbatches) {
    std::map<std::int32_t, std::set<std::int32_t>> by_microbatch;
    std::map<std::int32_t, std::set<std::int32_t>> by_stage;
    for (const auto& row : rows_)
      for (const auto& [work, cell] : row) {
        if (work.kind != job_kind::forward) continue;
        by_microbatch[work.microbatch].insert(work.stage);
        by_stage[work.stage].insert(work.microbatch);
      }
    const auto first_absent = [](const std::set<std::int32_t>& there) {
      std::int32_t absent = 0;
      while (there.contains(absent)) ++absent;
      return absent;
    };
    const auto stages = static_cast<std::int32_t>(made_.stage_to_rank.size());
    for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
      const std::set<std::int32_t>& there = by_microbatch[microbatch];
      if (2 * static_cast<std::int64_t>(there.size()) >= stages) continue;
      asked_for({first_absent(there), microbatch, 0, job_kind::forward}, [&](const job& work) {
        return there.empty() ? work.microbatch >= microbatch : work.microbatch == microbatch;
      });
      return true;
    }
    for (std::int32_t stage = 0; stage < stages; ++stage) {
      const std::set<std::int32_t>& there = by_stage[stage];
      if (2 * static_cast<std::int64_t>(there.size()) >= microbatches) continue;
      asked_for({stage, first_absent(there), 0, job_kind::forward},
                [&](const job& work) { return work.stage == stage; });
      return true;
    }
    return false;
  }

  void first_gap() {
    std::vector<std::vector<std::int32_t>> found(made_.stage_to_rank.size());
    for (const auto& row : rows_)
      for (const auto& [work, cell] : row)
        if (work.kind == job_kind::forward)
          found[static_cast<std::size_t>(work.stage)].push_back(work.microbatch);
    for (std::size_t stage = 0; stage < found.size(); ++stage) {
      auto& there = found[stage];
      std::sort(there.begin(), there.end());
      there.erase(std::unique(there.begin(), there.end()), there.end());
      std::int32_t gap = 0;
      while (static_cast<std::size_t>(gap) < there.size() &&
             there[static_cast<std::size_t>(gap)] == gap)
        ++gap;
      if (gap < made_.microbatches)
        return missing({static_cast<std::int32_t>(stage), gap, 0, job_kind::forward},
                       made_.stage_to_rank[stage]);
    }
  }

  //! The first job that does, which computes, asks for one that is missing.
  template <class Asks>
  void asked_for(const job& work, const Asks& asks) {
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (std::size_t step = 0; step < rows_[rank].size(); ++step) {
        const job& here = rows_[rank][step].work;
        if (is_compute(here.kind) && asks(here))
          return stray(refuse(fault::incomplete, reason::missing, static_cast<int>(rank),
                              static_cast<int>(step), work));
      }
  }
  void missing(const job& work, int rank) {
    answer_ = {.what = refuse(fault::incomplete, reason::missing, rank, -1, work), .row = rank + 1};
  }
  void stray(const verdict& what) {
    const int cell =
        rows_[static_cast<std::size_t>(what.rank)][static_cast<std::size_t>(what.step)].cell;
    answer_ = {
        .what = what,
        .row = what.rank + 1,
        .cell = cell,
        .text =
            made_.texts[static_cast<std::size_t>(what.rank)][static_cast<std::size_t>(cell) - 1]};
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
    std::vector<int> held(rows_.size());
    for (std::int32_t rank : made_.stage_to_rank)
      made_.chunks = std::max(made_.chunks, ++held[static_cast<std::size_t>(rank)]);
  }

  imported_schedule made_;
  csv_fault answer_;
  std::vector<std::vector<placed_job>> rows_;
  found_cell first_empty_;
  found_cell first_comms_;
};

}  // namespace detail

//! A file's text without the mark with which spreadsheets begin what is UTF-8.
constexpr std::string_view without_mark(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return text.substr(0, mark.size()) == mark ? text.substr(mark.size()) : text;
}

//! Reads a schedule, strictly: every cell a whole action of PyTorch's grammar, every row a rank
//! with work, every stage on one rank. CRLF and LF both end a row. A file with any action beyond F,
//! B, I, W and pairs is compute_comms. Does not say whether the schedule is valid: see `verify`.
inline csv_result read_csv(std::string_view text) {
  return detail::csv_reader().read(text);
}

}  // namespace stretto
