// The layers of a pipeline, whichever process holds them.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/layer.hpp"
#include "model/shards.hpp"
#include "pipeline/pipeline.hpp"

namespace train {
namespace {

std::span<float> span_of(stage& of, int layer, layer_part part) {
  switch (part) {
    case layer_part::parameters:
      return of.parameters(layer);
    case layer_part::gradients:
      return of.gradients(layer);
    case layer_part::mean:
      return of.mean(layer);
    case layer_part::square:
      break;
  }
  return of.square(layer);
}

}  // namespace

std::vector<std::string> pipeline::exchange(std::string_view what, std::string_view mine,
                                            bool to_all,
                                            std::chrono::nanoseconds at_least) const {
  if (between_ == nullptr) return {std::string(mine)};
  const auto longest = std::max(deadline_, at_least);
  const auto now = std::chrono::steady_clock::now();
  const auto end = stretto::executor::time_point::max();
  const auto limit = longest < end - now ? now + longest : end;
  return to_all ? between_->all_gather(what, mine, limit) : between_->gather(what, mine, limit);
}

template <class Take>
void pipeline::exchange_pieces(std::string_view what, std::string_view mine, std::size_t longest,
                               bool to_all, Take&& take) const {
  constexpr std::size_t most = std::size_t{1} << 22U;  // exchanges are for small strings
  for (std::size_t at = 0; at < longest; at += most) {
    const std::string_view piece = mine.substr(std::min(at, mine.size()), most);
    const std::vector<std::string> all = exchange(what, piece, to_all, for_leader());
    for (std::size_t process = 0; process < all.size(); ++process) take(process, at, all[process]);
  }
}

std::vector<std::string> pipeline::collected(std::string_view what, std::string_view mine) const {
  const std::size_t size = mine.size();
  std::size_t longest = 0;
  for (const std::string& each :
       exchange(what, {reinterpret_cast<const char*>(&size), sizeof size})) {
    std::size_t theirs = 0;
    std::memcpy(&theirs, each.data(), sizeof theirs);
    longest = std::max(longest, theirs);
  }
  const int processes = between_ == nullptr ? 1 : between_->processes();
  std::vector<std::string> made(leads() ? config::size(processes) : 0);
  exchange_pieces(what, mine, longest, false,
                  [&](std::size_t process, std::size_t, const std::string& piece) {
                    made[process] += piece;
                  });
  return made;
}

void pipeline::bring(std::size_t worker, std::span<float> values, std::size_t size,
                     bool to_all) const {
  const bool here = here_.holds(worker);
  char* const bytes = reinterpret_cast<char*>(values.data());
  exchange_pieces("layers", {bytes, here ? values.size_bytes() : 0}, size * sizeof(float), to_all,
                  [&](std::size_t, std::size_t at, const std::string& piece) {
                    if (!here) std::memcpy(bytes + at, piece.data(), piece.size());
                  });
}

pipeline::layer_place pipeline::place_of(int layer, int replica, int shard, int copy) const {
  model_.kind(layer);  // refuses a layer that does not exist
  int number = 0;
  const auto end_of = [this](int stage_number) {
    const auto& range = layers_[config::size(stage_number)];
    return range.first + range.count;
  };
  while (layer >= end_of(number)) ++number;
  const std::size_t found = worker(where_.rank_in(replica, number), shard, copy);
  return {found,
          &ranks_[found]->chunk(where_.chunk_of(number, 0) + replica * where_.chunks_one_way())};
}

template <class Call>
void pipeline::each_place(int layer, Call&& call) const {
  for (int copy = 0; copy < copies_; ++copy)
    for (int replica = 0; replica < replicas(); ++replica)
      for (int shard = 0; shard < model_.shards; ++shard)
        if (const layer_place there = place_of(layer, replica, shard, copy);
            here_.holds(there.worker))
          call(*there.at, shard);
}

bool pipeline::holds(int layer) const {
  bool found = false;
  each_place(layer, [&](const stage&, int) { found = true; });
  return found;
}

std::vector<float> pipeline::piece(int layer, layer_part part, int shard, int replica, int copy,
                                   bool to_all) const {
  const std::size_t size = parameter_scalars(model_, layer);
  const layer_place from = place_of(layer, replica, shard, copy);
  const bool gets = to_all || leads();
  const bool here = here_.holds(from.worker);
  std::vector<float> made(gets || here ? size : 0);
  if (here) {
    const std::span<const float> there = span_of(*from.at, layer, part);
    from.at->by().get(there.data(), made.data(), there.size_bytes());
  }
  if (between_ != nullptr) bring(from.worker, made, size, to_all);
  if (!gets) made.clear();
  return made;
}

std::vector<float> pipeline::joined(int layer, layer_part part, int replica, int copy,
                                    bool to_all) const {
  const bool gets = to_all || leads();
  std::vector<float> made(gets ? parameter_scalars(unsharded(model_), layer) : 0);
  for (int shard = 0; shard < model_.shards; ++shard) {
    const std::vector<float> one = piece(layer, part, shard, replica, copy, to_all);
    if (gets) put_shard<float>(model_, layer, shard, one, made);
  }
  return made;
}

void pipeline::set_whole(int layer, layer_part part, std::span<const float> to) {
  each_place(layer, [&](stage& into, int shard) {
    const std::span<float> there = span_of(into, layer, part);
    std::vector<float> piece(there.size());
    into.by().get(there.data(), piece.data(), there.size_bytes());
    take_shard<float>(model_, layer, shard, to, piece);
    into.by().put(piece.data(), there.data(), there.size_bytes());
  });
}

}  // namespace train
