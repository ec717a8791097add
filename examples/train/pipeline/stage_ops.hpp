// The jobs of a rank as ops: what expands the plans of whole jobs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/config.hpp"
#include "pipeline/settings.hpp"
#include "stretto/assignment/concept.hpp"
#include "stretto/lowering/op_programs.hpp"
#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/placement.hpp"

namespace train {

//! Names of the orders in which a job's ops are issued: "program, ...". Beside them there is
//! "whole", where jobs are not expanded.
std::string op_orders();

//! Whether jobs run as ops: where the settings say so, and where sums over shards lie between them.
//! @throws bad_setting for an order that does not exist, or whole jobs of shards
bool runs_ops(const pipeline_settings& settings);

//! The most pieces that an op is cut into under these settings; 1: none is cut.
int most_pieces(const pipeline_settings& settings);

//! The ops of the stages that a placement puts on a rank (a stretto::OpPolicy). Sums over the
//! shards are collectives on a stream of their own. The order in_pieces cuts ops, where their times
//! on a device of that sort say that it pays, or all that may be cut as often as it is told.
class stage_ops {
 public:
  //! @param layers  of every stage of the pipeline, in its order
  //! @param stream  of the sums: an index into the table of streams
  //! @throws bad_setting when a job has more ops than can be ordered, or more pieces are asked for
  //!         than there are rows
  stage_ops(const config& model, const stretto::placement& where,
            std::vector<stretto::assignment::layer_range> layers,
            const pipeline_settings& settings, int stream);

  //! Of the order.
  const std::string& name() const { return order_; }
  stretto::program_chain programs(int rank) const;
  std::vector<std::int32_t> order(stretto::op_graph& graph) const;

 private:
  const stretto::overlap::cut_order& cut(const stretto::op_graph& graph) const;

  config model_;
  stretto::placement where_;
  std::vector<stretto::assignment::layer_range> layers_;
  std::string order_;
  std::uint8_t stream_;
  int pieces_;
  const stretto::machine* on_;  // null: times are multiply-adds
  // The graphs ordered last, cut: most of a pipeline's stages are alike.
  mutable std::vector<std::pair<stretto::op_graph, stretto::overlap::cut_order>> known_;
  mutable stretto::program_chain chain_;  // of the rank asked for last
};

}  // namespace train
