// One worker's part of the model: its rank's stages, or a shard of each, and the batch that they
// read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/batch.hpp"
#include "model/config.hpp"
#include "model/host_math.hpp"
#include "model/math.hpp"
#include "model/stage.hpp"
#include "stretto/assignment/concept.hpp"
#include "stretto/executor/stage.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/placement.hpp"

namespace train {

//! The stages that a placement puts on a rank. Training and evaluation run on the same ones, one
//! after the other.
class rank_model {
 public:
  //! @param layers of every stage of the pipeline, in its order
  //! @param shard  of all stages
  //! @param by     does the work of all stages, and outlives them
  //! @param microbatches  the most of a step
  //! @param held   false: another process runs it, and this one only knows its sizes
  rank_model(const config& model, const stretto::placement& where, int rank,
             std::span<const stretto::assignment::layer_range> layers, std::uint64_t seed,
             int shard = 0, const math<float>& by = host_math<float>(), int microbatches = 0,
             bool held = true);

  const math<float>& by() const { return by_; }

  int chunks() const { return static_cast<int>(stages_.size()); }
  stage& chunk(int index) { return *stages_[config::size(index)]; }
  const stage& chunk(int index) const { return *stages_[config::size(index)]; }
  //! The rank's chunk that is this stage of the pipeline.
  int chunk_of(int number) const {
    int index = 0;
    while (where_.stage_of(rank_, index) != number) ++index;
    return index;
  }
  //! Whether another rank holds the same stage for the first of two directions.
  bool is_second_replica(int index) const { return index >= where_.chunks_one_way(); }
  stage& stage_of(int number) { return chunk(chunk_of(number)); }
  const stage& stage_of(int number) const { return chunk(chunk_of(number)); }
  int shard() const { return chunk(0).shard(); }

  //! The stage that holds layer 0 or the last one; null on the ranks that do not.
  stage* with_embedding() { return embedding_; }
  stage* with_head() { return head_; }
  //! Whether a stage holds the head, or a piece of it.
  bool has_piece() const { return has_piece_; }

  //! Before a step, while none is under way: fill(microbatch, tokens, targets) writes what its jobs
  //! will read, where it must lie somewhere before the first of them is issued.
  template <class Fill>
  void prepare_batches(int microbatches, Fill&& fill) {
    if (by_.on_host() || (embedding_ == nullptr && !has_piece_)) return;
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      fill(microbatch, batch_.tokens(), batch_.targets());
      set_aside(microbatch);
    }
  }
  //! Before a step's first job.
  void begin_step() {
    for (const auto& each : stages_) each->round_weights();
  }
  //! Before a job that reads the batch, with the same fill.
  template <class Fill>
  void read_batch(const stretto::executor::context& at, Fill&& fill) {
    if (by_.on_host()) fill(at.what.microbatch, batch_.tokens(), batch_.targets());
    hand_over(at.what.microbatch, config::size(at.what.slice));
  }

  std::size_t batch_bytes() const { return batch_.bytes(); }

  //! Whether the job, or the op of it, that the executor asks for reads the batch.
  bool reads_batch(const stretto::executor::context& at) const;
  //! Whether it makes logits of the micro-batch, or of the slice.
  bool makes_logits(const stretto::executor::context& at) const;

  //! Runs the job, or the op of it, that the executor asks for; forwards on the batch read last.
  //! @param loss    where it leaves the loss, scaled, where it finds one
  //! @param logits  of one row, where it makes some
  void run(const stretto::executor::context& at, double loss_scale, double* loss,
           row_logits<float> logits = {});

 private:
  //! The stashes of the micro-batch's slices before the job's own; valid until the next call.
  earlier_slices<float> earlier(const stretto::executor::context& at);
  void set_aside(int microbatch);
  void hand_over(int microbatch, std::size_t slice);
  //! Where what a slice reads lies in the meantime: tokens, then targets, each with room for the
  //! longest slice's.
  std::span<std::uint8_t> aside(int microbatch, std::size_t slice) const;

  stretto::placement where_;
  int rank_;
  std::vector<std::unique_ptr<stage>> stages_;
  stage* embedding_ = nullptr;
  stage* head_ = nullptr;
  bool has_piece_ = false;
  const math<float>& by_;
  batch batch_;
  const std::uint8_t *tokens_, *targets_;  // of the slice read last, in by_'s memory
  // Where that is not the host's: the batches of a whole step, since all its jobs are issued before
  // the first has read, or not issued again at all; and the one read last.
  std::shared_ptr<void> staging_, in_device_;
  std::size_t slices_, rows_;  // rows of the longest slice
  int most_microbatches_;
  std::vector<std::span<float>> earlier_;
};

}  // namespace train
