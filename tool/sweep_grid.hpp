#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compare_table.hpp"

namespace stretto::tool {

//! What a sweep tells of each schedule on each shape; the less, the better.
struct sweep_measure {
  const char* name;  //!< as --measure has it
  const char* title;
  bool part;  //!< of something, told in percent
  //! Empty: it has none.
  std::optional<double> (*value)(const comparison&, const compared&);

  std::string text(double of) const;
};

//! bubble, makespan, ...
const std::vector<sweep_measure>& sweep_measures();

//! A schedule in so many chunks and slices, on all shapes.
struct swept {
  std::string name;
  int chunks;
  int slices;
  bool forward_only;
  std::vector<std::optional<double>> values;  //!< empty where it is not there, or has none
  std::vector<std::string> refused;           //!< why it is not there, or nothing

  std::string in_words(bool with_chunks) const;
};

//! Shapes that are told side by side.
struct sweep_panel {
  std::string title;        //!< "4 ranks"; empty where there is one panel
  const char* axis;         //!< of what there are so many in each
  std::vector<int> counts;  //!< upwards
  std::vector<std::size_t> shapes;
  std::vector<const swept*> lines;  //!< the best on the last first, forwards alone behind
};

//! Schedules on shapes of several numbers of ranks and micro-batches.
class sweep_grid {
 public:
  //! @param of     what is told, which outlives this
  //! @param ranks, microbatches  upwards, each once
  sweep_grid(const sweep_measure& of, std::vector<int> ranks, std::vector<int> microbatches);

  const sweep_measure& measure() const { return measure_; }
  std::size_t shapes() const { return ranks_.size() * microbatches_.size(); }
  int ranks_of(std::size_t shape) const { return ranks_[shape / microbatches_.size()]; }
  int microbatches_of(std::size_t shape) const {
    return microbatches_[shape % microbatches_.size()];
  }

  //! The rows of a comparison of this shape.
  void add(std::size_t shape, const comparison& common, const comparison_run& made);

  //! One for each number of ranks, which has all numbers of micro-batches; where there is one of
  //! these, one panel that has all numbers of ranks.
  std::vector<sweep_panel> panels() const;
  //! Whether a schedule may stand there in several numbers of chunks.
  bool several_chunks() const { return several_chunks_; }

  std::string table() const;

 private:
  swept& line_of(const compared& one);
  std::string table_of(const sweep_panel& panel) const;
  //! Why some are not there, and on which shapes of the panel.
  std::string reasons_of(const sweep_panel& panel) const;

  const sweep_measure& measure_;
  std::vector<int> ranks_;
  std::vector<int> microbatches_;
  bool several_chunks_ = false;
  bool sliced_ = false;
  std::vector<swept> lines_;
};

}  // namespace stretto::tool
