// A schedule in PyTorch's CSV, of any bytes: what is read is written and read again as it was, and
// what the rules accept gets messages and plans.
#include "stretto/plan/csv.hpp"

#include <string>

#include "fuzz/support/fuzz.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/csv_comms.hpp"
#include "stretto/plan/planned.hpp"

namespace {

using fuzz::require;
using stretto::csv_cells;
using stretto::csv_result;
using stretto::replay_input;

bool same_jobs(const stretto::job_rows& one, const stretto::job_rows& other) {
  if (one.ranks != other.ranks) return false;
  for (int rank = 0; rank < one.ranks; ++rank) {
    if (one.counts[rank] != other.counts[rank]) return false;
    for (int step = 0; step < one.counts[rank]; ++step)
      if (!(one.at(rank, step) == other.at(rank, step))) return false;
  }
  return true;
}

void write_and_read(const stretto::imported_schedule& read, csv_cells cells) {
  std::string text;
  require(stretto::write_csv(read.lists.rows(), read.where(), text, cells).ok(),
          "what is read is written");
  const csv_result again = stretto::read_csv(text, cells);
  require(again.answer.ok(), "what is written is read: " + again.answer.sentence());
  require(same_jobs(read.lists.rows(), again.schedule.lists.rows()) &&
              read.stage_to_rank == again.schedule.stage_to_rank &&
              read.format == again.schedule.format &&
              read.microbatches == again.schedule.microbatches &&
              read.slices == again.schedule.slices &&
              read.two_directions == again.schedule.two_directions &&
              read.chunks == again.schedule.chunks,
          "what is read again is as it was");
}

void lower_as_pytorch(const replay_input& compute) {
  const stretto::job_lists lowered = stretto::with_pytorch_comms(compute);
  replay_input messages = compute;
  messages.rows = lowered.rows();
  messages.messages = true;
  require(stretto::check::schedule(messages).ok() && stretto::check::sharded(messages).ok(),
          "with PyTorch's messages lists keep the rules");
}

//! Of lists that keep all rules.
void plan(const replay_input& compute) {
  bool train = false;
  for (int rank = 0; rank < compute.rows.ranks; ++rank)
    for (const stretto::job& work : compute.rows.row(rank))
      train = train || stretto::is_input_gradient(work.kind);
  stretto::plan_request request;
  request.train = train;
  const stretto::planned made(compute, stretto::overlap::separate{}, request);
  require(made.answer().ok(),
          "what is accepted is planned: " + std::string(to_text(made.answer()).view()));
}

}  // namespace

namespace {

void read_and_check(std::string_view text, csv_cells cells) {
  const csv_result read = stretto::read_csv(text, cells);
  require(!read.answer.sentence().empty(), "a sentence");
  if (!read.answer.ok()) return;
  require(cells == csv_cells::all || !read.schedule.beyond_pytorch, "what PyTorch has a form for");
  write_and_read(read.schedule, cells);
  const stretto::placement where = read.schedule.where();
  const stretto::job_table costs(where.ranks, where.chunks);
  const stretto::csv_fault found = stretto::verify(read.schedule, costs.view());
  require(!found.sentence().empty(), "a sentence");
  if (!found.ok() || read.schedule.format != stretto::csv_format::compute_only) return;
  if (!read.schedule.beyond_pytorch) lower_as_pytorch(read.schedule.input(costs.view()));
  plan(read.schedule.input(costs.view()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(stretto::without_mark(fuzz::text(data, size)));
  for (const csv_cells cells : {csv_cells::pytorch, csv_cells::all}) read_and_check(text, cells);
  return 0;
}
