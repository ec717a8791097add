#include "model/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>

#include "model/cpu_time.hpp"
#include "model/kernels.hpp"
#include "model/stage.hpp"

namespace train {
namespace {

using samples = std::vector<double>;

double median(samples& of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

//! The median of what so many runs took together, of each. A clock that ticks too seldom to see any
//! of it says 0, which is no time that anything takes.
std::int64_t time_of(samples& of, int runs) {
  return std::max(std::int64_t{1}, static_cast<std::int64_t>(median(of) / runs + 0.5));
}

//! Reading the clock takes part of what it measures.
double clock_time() {
  samples all;
  for (int each = 0; each < 1001; ++each) {
    const std::int64_t start = thread_cpu_time();
    all.push_back(static_cast<double>(thread_cpu_time() - start));
  }
  return median(all);
}

//! About what the operands of a kernel take.
std::int64_t bytes_of(const stretto::kernel_sizes& sizes) {
  if (sizes[1] == 0) return sizes[0];
  return 4 * (sizes[0] * sizes[1] + sizes[1] * sizes[2] + sizes[2] * sizes[0]);
}

//! Runs in turn on as many sets of operands as it takes for a run to find its own where an op does.
class in_turn {
 public:
  in_turn(const kernel& of, const stretto::kernel_sizes& sizes) {
    const std::int64_t sets = std::clamp<std::int64_t>(of.between / bytes_of(sizes), 1, 256);
    for (std::int64_t each = 0; each < sets; ++each) sets_.push_back(of.prepare(sizes));
  }
  void operator()() {
    sets_[next_]();
    next_ = next_ + 1 < sets_.size() ? next_ + 1 : 0;
  }
  int sets() const { return static_cast<int>(sets_.size()); }

 private:
  std::vector<std::function<void()>> sets_;
  std::size_t next_ = 0;
};

//! @param least  of nanoseconds in a sample, and ten times that in all
void sample(in_turn run, double least, double clock, samples& out) {
  const auto timed = [&](int runs) {
    const std::int64_t start = thread_cpu_time();
    for (int each = 0; each < runs; ++each) run();
    return static_cast<double>(thread_cpu_time() - start) - clock;
  };
  timed(run.sets());
  int runs = 1;
  while (runs < 1 << 16 && timed(runs) < least) runs *= 2;
  double all = 0;
  for (int each = 0; each < 3 || (all < 10 * least && each < 50); ++each) {
    const double taken = timed(runs);
    all += taken;
    out.push_back(taken / runs);
  }
}

//! The sizes at a point of the grid, the last axis' first.
stretto::kernel_sizes sizes_at(const kernel& of, std::size_t point) {
  stretto::kernel_sizes sizes{};
  for (std::size_t axis = of.grid.size(); axis-- > 0;) {
    sizes[axis] = of.grid[axis][point % of.grid[axis].size()];
    point /= of.grid[axis].size();
  }
  return sizes;
}

void raise_to_smaller(const std::vector<std::vector<std::int64_t>>& axes,
                      std::vector<std::int64_t>& times) {
  std::size_t stride = 1;
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    for (std::size_t point = 0; point < times.size(); ++point)
      if (point / stride % axes[axis].size() > 0)
        times[point] = std::max(times[point], times[point - stride]);
    stride *= axes[axis].size();
  }
}

}  // namespace

std::vector<kernel_times> calibrate(const calibration_settings& with) {
  const std::vector<kernel> all = kernels(with.few);
  const int rounds = with.few ? 1 : with.rounds;
  const double clock = clock_time();
  std::vector<std::vector<samples>> taken(all.size());
  int points = 0, done = 0;
  for (std::size_t each = 0; each < all.size(); ++each) {
    std::size_t count = 1;
    for (const auto& axis : all[each].grid) count *= axis.size();
    taken[each].resize(count);
    points += rounds * static_cast<int>(count);
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t each = 0; each < all.size(); ++each)
      for (std::size_t point = 0; point < taken[each].size(); ++point) {
        sample(in_turn(all[each], sizes_at(all[each], point)), with.few ? 1e3 : 1e5, clock,
               taken[each][point]);
        if (with.progress) with.progress(std::string(all[each].name), ++done, points);
      }
  std::vector<kernel_times> made;
  for (std::size_t each = 0; each < all.size(); ++each) {
    kernel_times one{std::string(all[each].name), all[each].grid, {}};
    for (samples& of : taken[each]) one.times.push_back(time_of(of, all[each].times));
    raise_to_smaller(one.axes, one.times);
    made.push_back(std::move(one));
  }
  return made;
}

std::vector<op_time> measure_ops(const config& model, int microbatches) {
  if (model.shards != 1 || model.slices != 1)
    throw std::invalid_argument("measure_ops: the model must be in one piece, its sequences whole");
  if (microbatches < 1) throw std::invalid_argument("measure_ops: no micro-batches");
  stage whole(model, 0, model.layer_count(), 1);
  aligned_array<float> stash(whole.stash_scalars());
  std::vector<std::uint8_t> bytes(model.rows());
  for (std::size_t at = 0; at < bytes.size(); ++at)
    bytes[at] = static_cast<std::uint8_t>(at * 37 % config::size(model.vocabulary));
  const job_arguments<float> with{.tokens = bytes, .targets = bytes, .stash = stash.span()};
  const double clock = clock_time();
  std::array<samples, op_code_count> taken;
  for (int each = -1; each < microbatches; ++each)
    for (const auto kind : {stretto::job_kind::forward, stretto::job_kind::backward_input,
                            stretto::job_kind::backward_weight}) {
      const auto ops = whole.ops(kind);
      for (std::size_t op = 0; op < ops.size(); ++op) {
        const std::int64_t start = thread_cpu_time();
        whole.run_op(kind, op, with);
        const auto end = thread_cpu_time();
        if (each >= 0)
          taken[static_cast<std::size_t>(ops[op].code)].push_back(static_cast<double>(end - start) -
                                                                  clock);
      }
    }
  std::vector<op_time> made;
  for (std::size_t code = 0; code < taken.size(); ++code)
    if (!taken[code].empty()) made.push_back({static_cast<op_code>(code), time_of(taken[code], 1)});
  return made;
}

}  // namespace train
