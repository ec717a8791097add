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

void pipeline::bring(std::size_t worker, std::size_t size, std::span<float> values,
                     bool to_all) const {
  constexpr std::size_t most = std::size_t{1} << 22U;  // exchanges are for small strings
  const bool here = here_.holds(worker);
  std::string mine;
  for (std::size_t at = 0; at < size; at += most) {
    const auto part = [&] {
      return std::as_writable_bytes(values.subspan(at, std::min(most, size - at)));
    };
    if (here) mine.assign(reinterpret_cast<const char*>(part().data()), part().size());
    for (const std::string& each : exchange("layers", mine, to_all, for_leader()))
      if (!here && !each.empty()) std::memcpy(part().data(), each.data(), part().size());
  }
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
  if (between_ != nullptr) bring(from.worker, size, made, to_all);
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
