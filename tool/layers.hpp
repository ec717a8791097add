#pragma once

#include <string>
#include <vector>

#include "errors.hpp"
#include "stretto/assignment/described.hpp"
#include "stretto/model/cost.hpp"

namespace CLI {
class App;
}

namespace stretto::tool {

//! --layers, --embedding, --head and --layer-costs: the model by layers.
struct layer_options {
  std::string text;
  std::string embedding;
  std::string head;
  std::string file;
  //! Whether balanced layers that must not keep to a limit are dealt so that an order would, where
  //! they can; else they are dealt as if there were none.
  bool within_limit = true;
  //! Of every stage, of how many micro-batches that order has activations at once; empty: as many
  //! as 1F1B has.
  std::vector<std::int32_t> alive;
  std::int64_t spare = 0;  //!< so much less than the limit is what they are dealt within
  bool evenly = false;     //!< balanced layers are dealt as even ones are
  //! Of forwards alone: no backward takes time, and the state is the weights, where the file tells
  //! these apart.
  bool forward_only = false;
  bool keeps_nothing = false;  //!< see cost_options::for_step
  //! Whether the step copies to the host, and nothing but `file` can say how long that takes.
  bool copies = false;
  //! Of how many stages at once a rank has weights that are gathered; 0: none are.
  int gathered = 0;

  void add(CLI::App& command);
  bool given() const { return !text.empty(); }
};

//! --layers cannot be dealt to a placement.
struct layers_refused : bad_input {
  layers_refused(const std::string& words, const verdict& answer) : bad_input(words), why(answer) {}
  verdict why;
};

//! A model whose layers are dealt.
struct dealt_layers {
  assignment::described how;
  std::vector<unit_costs> costs;    //!< of every layer
  //! Of every slice of a micro-batch, where --layer-costs tells them apart: of every layer; `costs`
  //! are then of all slices together.
  std::vector<std::vector<unit_costs>> slices;
  std::vector<bool> brings_back;    //!< of every layer whether the file says what a second run does
  std::vector<layer_range> stages;  //!< in pipeline order
  std::int64_t bound = 0;           //!< no slowest rank is faster; 0: nothing is known
  //! Memory that the first and the last layer each count, and a rank with both has once; and what
  //! the sum of its gradients takes where two ranks have it.
  std::int64_t shared_ends = 0;
  std::int64_t reduce_ends = 0;

  //! The chunks of a rank that have the first layer, and the last; -1: none.
  struct end_chunks {
    int first = -1, last = -1;
    bool both() const { return first >= 0 && last >= 0; }
  };
  end_chunks ends_on(const placement& where, int rank) const;

  auto cost_of() const {
    return [this](int layer) { return costs[static_cast<std::size_t>(layer)]; };
  }
  auto cost_of_slice(std::size_t slice) const {
    return [this, slice](int layer) { return slices[slice][static_cast<std::size_t>(layer)]; };
  }
};

//! Reads the options and deals the layers.
//! @param layer what a layer takes unless the options say otherwise
//! @param limit most memory of every rank; empty: none. Balanced layers keep to it where they can,
//!        counting the activations of as many micro-batches as stages follow, as 1F1B keeps them
//! @param strict whether a limit that they cannot keep to is refused; else see within_limit
//! @throws layers_refused, bad_input
dealt_layers deal_layers(const layer_options& options, const placement& where,
                         const unit_costs& layer, const std::vector<std::int64_t>& limit,
                         bool strict);

}  // namespace stretto::tool
