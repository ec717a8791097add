#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/model/verdict_text.hpp"

namespace stretto {

//! The two forms of torch.distributed.pipelining's schedule CSV. One row per rank, one action per
//! cell; no placement: a stage lies on the rank whose row computes it.
enum class csv_format : std::uint8_t {
  compute_only,   //!< F, B, I, W and pairs (and R and copies); an empty cell is a bubble
  compute_comms,  //!< with sends, receives, UNSHARD, RESHARD and REDUCE_GRAD; no empty cell
};

//! What cells may say.
enum class csv_cells : std::uint8_t {
  pytorch,  //!< PyTorch's actions
  //! These, and what it has none for, which no other program reads: slices (0F1.2), forwards that
  //! run again (0R1), copies to the host and back (0OFFLOAD1, 0RELOAD1), and stages that lie on two
  //! ranks, one in either direction.
  all,
};

//! Whether a cell may say it.
constexpr bool has_form(const job& work, csv_cells cells) {
  return has_pytorch_form(work) || (cells == csv_cells::all && is_of_cell(work.kind));
}

//! What is wrong with a file and where. Row and cell count from 1; 0: none in particular.
struct csv_fault {
  verdict what{};
  int row = 0;
  int cell = 0;
  std::string text{};  //!< the cell's text
  int first = 0;       //!< of reason::duplicate, the cell where the job stands the first time

  bool ok() const { return what.ok(); }
  //! One sentence: `row 2 (rank 1), cell 3, "0X0": syntax: not an action: ...`
  std::string sentence() const {
    if (ok()) return "ok";
    std::string words;
    if (row > 0) words += "row " + std::to_string(row) + " (rank " + std::to_string(row - 1) + ")";
    if (cell > 0) words += ", cell " + std::to_string(cell);
    if (!text.empty()) words += ", \"" + text + "\"";
    if (!words.empty()) words += ": ";
    // Row and cell say the rank and the step; the cell's text mostly says the job.
    verdict rest = what;
    if (row > 0) rest.rank = -1;
    if (cell > 0) rest.step = -1;
    if (first > 0) {
      rest.has_other = false;
      rest.amount = 0;
    }
    if (rest.has_job && text == to_text(rest.where).view()) rest.has_job = false;
    words.append(to_text(rest).view());
    if (cell > 0 && what.why == reason::missing && !what.has_other)
      words += ", which this cell asks for";
    if (first > 0) words += ", the first time in cell " + std::to_string(first);
    return words;
  }
};

//! A schedule read from a file, in the library's own vocabulary.
struct imported_schedule {
  csv_format format = csv_format::compute_only;
  job_lists lists{};
  std::vector<std::int32_t> stage_to_rank{};      //!< of two directions that of the first
  bool two_directions = false;                    //!< each stage lies on two ranks
  bool beyond_pytorch = false;                    //!< some cells are csv_cells::all's alone
  int microbatches = 0;                           //!< 1 + the highest
  int slices = 1;                                 //!< the same
  int chunks = 0;                                 //!< most stages of any rank, in one direction
  std::vector<std::vector<int>> cells{};          //!< cells[rank][step]: the cell, from 1
  std::vector<std::vector<std::string>> texts{};  //!< texts[rank][cell - 1]

  //! Points into this object.
  placement where() const {
    if (two_directions)
      return place(placement_kind::bidirectional, {lists.rows().ranks, microbatches, chunks});
    return {.kind = placement_kind::table,
            .ranks = lists.rows().ranks,
            .chunks = chunks,
            .microbatches = microbatches,
            .table = stage_to_rank.data(),
            .table_stages = static_cast<int>(stage_to_rank.size())};
  }
  //! looped, wave or bidirectional, when the stages lie as there.
  std::optional<placement_kind> lies_as() const {
    if (two_directions) return placement_kind::bidirectional;
    const placement mine = where();
    for (const placement_kind kind : {placement_kind::looped, placement_kind::wave}) {
      const placement same = place(kind, {mine.ranks, microbatches, chunks});
      bool all = same.stages() == mine.stages();
      for (int stage = 0; all && stage < mine.stages(); ++stage)
        all = same.rank_of(stage, 0) == mine.rank_of(stage, 0);
      if (all) return kind;
    }
    return std::nullopt;
  }
  //! What a replay or a check takes.
  replay_input input(const job_table_view& costs) const {
    return {.rows = lists.rows(),
            .where = where(),
            .microbatches = microbatches,
            .slices = slices,
            .costs = costs,
            .messages = format == csv_format::compute_comms};
  }
  //! A verdict on `lists`, told in rows and cells.
  csv_fault locate(const verdict& answer) const {
    csv_fault found{.what = answer};
    if (answer.ok() || answer.rank < 0) return found;
    found.row = answer.rank + 1;
    const auto rank = static_cast<std::size_t>(answer.rank);
    if (rank >= cells.size()) return found;
    int step = answer.step;
    // What is missing has no place: tell that of the job because of which it is missed.
    for (int at = 0; step < 0 && answer.has_other && at < lists.rows().counts[rank]; ++at)
      if (lists.rows().at(answer.rank, at) == answer.other) step = at;
    if (step < 0 || static_cast<std::size_t>(step) >= cells[rank].size()) return found;
    found.cell = cells[rank][static_cast<std::size_t>(step)];
    if (answer.why == reason::duplicate && answer.has_other)
      found.first = cells[rank][static_cast<std::size_t>(answer.amount)];
    found.text = texts[rank][static_cast<std::size_t>(found.cell) - 1];
    return found;
  }
};

//! What `read_csv` made of a file; `schedule` means something when `answer` is ok.
struct csv_result {
  imported_schedule schedule{};
  csv_fault answer{};
};

}  // namespace stretto
