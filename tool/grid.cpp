#include "grid.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "stretto/model/job_text.hpp"

namespace stretto::tool {

namespace {

//! A job or a pair.
struct node {
  std::string label;
  job_kind kind;
  int step;
};

std::vector<node> nodes_of(const job_rows& rows, int rank, bool overlap_name) {
  std::vector<node> all;
  for (int step = 0; step < rows.counts[rank]; ++step) {
    const job& work = rows.at(rank, step);
    node one{std::string(to_text(work).view()), work.kind, step};
    if (work.paired && step + 1 < rows.counts[rank]) {
      const job& second = rows.at(rank, ++step);
      one.label = overlap_name ? std::string(to_text(work, second).view())
                               : one.label + ";" + std::string(to_text(second).view());
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string painted(const std::string& text, job_kind kind, bool colour) {
  if (!colour) return text;
  const char* code = "0";
  switch (kind) {
    case job_kind::forward:
      code = "34";
      break;
    case job_kind::backward:
      code = "32";
      break;
    case job_kind::backward_input:
      code = "36";
      break;
    case job_kind::backward_weight:
      code = "33";
      break;
    case job_kind::recompute:
      code = "35";
      break;
    default:
      code = "2";
      break;
  }
  return std::string("\033[") + code + "m" + text + "\033[0m";
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

std::string by_step(const job_rows& rows, bool colour) {
  std::vector<std::vector<node>> lists;
  std::vector<std::size_t> widths;
  std::size_t steps = 0;
  std::string out = "step  ";
  const std::size_t first = 6;
  for (int rank = 0; rank < rows.ranks; ++rank) {
    const std::string head = "rank " + std::to_string(rank);
    lists.push_back(nodes_of(rows, rank, true));
    steps = std::max(steps, lists.back().size());
    std::size_t width = head.size();
    for (const node& one : lists.back()) width = std::max(width, one.label.size());
    widths.push_back(width + 2);
    out += padded(head, widths.back());
  }
  end_line(out);
  for (std::size_t step = 0; step < steps; ++step) {
    out += padded(std::to_string(step), first);
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      const bool there = step < lists[rank].size();
      const std::string label = there ? lists[rank][step].label : "";
      if (there) out += painted(label, lists[rank][step].kind, colour);
      out.append(widths[rank] - label.size(), ' ');
    }
    end_line(out);
  }
  return out;
}

//! Empty when it would not fit.
std::string by_time(const job_rows& rows, std::span<const job_time> timeline,
                    const finer_unit& time, int columns, bool colour) {
  const auto when = [&](int rank, int step) {
    return timeline[static_cast<std::size_t>(rank) * static_cast<std::size_t>(rows.stride) +
                    static_cast<std::size_t>(step)];
  };
  // 1. The longest unit that all starts and ends are multiples of, and its width.
  std::int64_t unit = 0;
  std::int64_t end = 0;
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (int step = 0; step < rows.counts[rank]; ++step) {
      const job_time at = when(rank, step);
      if (at.end == at.start || is_copy(rows.at(rank, step).kind)) return {};
      unit = std::gcd(std::gcd(unit, at.start), at.end);
      end = std::max(end, at.end);
    }
  if (unit == 0) return {};
  std::vector<std::vector<node>> lists;
  std::int64_t width = 2;
  for (int rank = 0; rank < rows.ranks; ++rank) {
    lists.push_back(nodes_of(rows, rank, false));
    for (const node& one : lists.back()) {
      const job_time at = when(rank, one.step);
      const std::int64_t units = (at.end - at.start) / unit;
      width = std::max(width, (static_cast<std::int64_t>(one.label.size()) + units) / units);
    }
  }
  const std::size_t left = 6 + std::to_string(rows.ranks - 1).size();
  if (end / unit > columns ||
      static_cast<std::int64_t>(left) + end / unit * width > std::int64_t{columns})
    return {};
  // 2. The time axis.
  std::string out = padded("time", left);
  for (std::int64_t at = 0; at < end;) {
    const std::string tick = time.text(at);
    const std::int64_t next =
        at + unit * ((static_cast<std::int64_t>(tick.size()) + width) / width);
    out += padded(tick, static_cast<std::size_t>((next - at) / unit * width));
    at = next;
  }
  end_line(out);
  // 3. The ranks.
  for (int rank = 0; rank < rows.ranks; ++rank) {
    out += padded("rank " + std::to_string(rank), left);
    std::int64_t at = 0;
    const auto idle_until = [&](std::int64_t until) {
      for (; at < until; at += unit) out += padded(".", static_cast<std::size_t>(width));
    };
    for (const node& one : lists[static_cast<std::size_t>(rank)]) {
      const job_time span = when(rank, one.step);
      idle_until(span.start);
      std::string body = one.label;
      body.resize(static_cast<std::size_t>((span.end - span.start) / unit * width) - 1, '-');
      out += painted(body, one.kind, colour) + ' ';
      at = span.end;
    }
    idle_until(end);
    end_line(out);
  }
  return out;
}

}  // namespace

std::string print_grid(const job_rows& rows, std::span<const job_time> timeline,
                       const finer_unit& time, int columns, bool colour) {
  const std::string timed = timeline.empty() ? "" : by_time(rows, timeline, time, columns, colour);
  return timed.empty() ? by_step(rows, colour) : timed;
}

}  // namespace stretto::tool
