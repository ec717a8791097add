#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/model/program.hpp"
#include "stretto/model/transformer.hpp"

namespace stretto::tool {

//! --recompute and --recompute-inside of a transformer's ops: what of a forward is not kept, but
//! made again for the backward, by a job of its own or in backwards.
class recomputation {
 public:
  //! @param where  said first of the help
  void add(CLI::App& command, const std::string& where);
  //! @throws bad_option of what cannot be
  void settle(const transformer& model, int slices) const;

  const std::string& text() const { return text_; }
  bool any() const { return text_ != "none"; }
  //! It is a job of its own, and not a part of backwards.
  bool apart() const { return any() && !inside_ && !by_layers(); }
  //! In backwards layers run again, each before its own, all or some of a stage.
  bool by_layers() const { return text_ == "layers" || by_some_layers(); }
  bool by_some_layers() const { return text_.starts_with("layers:"); }
  layers_again again() const;
  //! The chain with a second run of such ops, before backwards or in them.
  program_chain of(const program_chain& chain) const;

 private:
  std::vector<std::string> words() const;
  //! @throws bad_option of what is no number
  std::int64_t some_layers() const;

  std::string text_ = "none";
  bool inside_ = false;
};

}  // namespace stretto::tool
