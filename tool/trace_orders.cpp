#include "trace_orders.hpp"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stretto/model/job_text.hpp"

namespace stretto::tool {

namespace {

std::string text(const job& work) {
  return std::string(to_text(work).view());
}

//! One step's records by what they are, and the orders that they must keep.
class order_check {
 public:
  explicit order_check(const std::vector<traced>& step) {
    for (const traced& one : step) records_.emplace(key_of(one.what), &one);
  }
  const traced* find(const job& work) const {
    const auto found = records_.find(key_of(work));
    return found == records_.end() ? nullptr : found->second;
  }

  //! Empty: `work` comes after all that it needs.
  std::string run(const job& work) const {
    const traced& mine = *find(work);
    for (const job& need : needs_of(work)) {
      const traced* const made = find(need);
      if (made == nullptr) continue;  // of the first stage, without slices, not recomputed
      const std::string wrong =
          made->rank == mine.rank ? after(*made, mine, "data") : by_message(*made, mine);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  static std::string after(const traced& first, const traced& second, const char* why) {
    if (first.when.end <= second.when.start) return "";
    return said(first, second, why) + " ends " + us(first.when.end - second.when.start) +
           " us after it starts";
  }

 private:
  static std::vector<job> needs_of(const job& work) {
    const auto like = [&](job_kind kind, int stages = 0, int slices = 0) {
      job made = work;
      made.kind = kind;
      made.stage += stages;
      made.slice = static_cast<std::int16_t>(made.slice + slices);
      return made;
    };
    switch (work.kind) {
      case job_kind::forward:
        return {like(job_kind::forward, -1), like(job_kind::forward, 0, -1)};
      case job_kind::backward:
      case job_kind::backward_input:
        return {like(job_kind::forward), like(job_kind::recompute),
                like(job_kind::backward_input, 1), like(job_kind::backward_input, 0, 1)};
      case job_kind::backward_weight:
        return {like(job_kind::backward_input)};
      default:
        return {like(job_kind::forward)};
    }
  }
  //! A message leaves after `made`, comes no earlier than it leaves, and before `mine`.
  std::string by_message(const traced& made, const traced& mine) const {
    job sent = made.what;
    sent.kind =
        made.what.kind == job_kind::forward ? job_kind::send_forward : job_kind::send_backward;
    const traced* const send = find(sent);
    const traced* const receive = find(matching_receive(sent));
    if (send == nullptr || receive == nullptr) return after(made, mine, "message");
    std::string wrong = after(made, *send, "data");
    if (wrong.empty() && send->when.start > receive->when.end)
      wrong = said(*send, *receive, "message") + " starts " +
              us(send->when.start - receive->when.end) + " us after it ends";
    return wrong.empty() ? after(*receive, mine, "data") : wrong;
  }
  static std::string said(const traced& first, const traced& second, const char* why) {
    return "step " + std::to_string(second.step) + ": " + text(second.what) + " on rank " +
           std::to_string(second.rank) + " comes after " + text(first.what) + " on rank " +
           std::to_string(first.rank) + " (" + why + "), which";
  }
  static std::string us(std::int64_t ns) {
    return std::to_string(ns / 1000) + "." + std::to_string(ns % 1000 / 100);
  }

  std::map<work_key, const traced*> records_;
};

//! What a step has, or has not, of another schedule's jobs. Empty: the same.
std::string other_jobs(const std::vector<traced>& step, const order_check& orders,
                       const job_rows& rows) {
  const std::string another = ": it is a trace of another schedule";
  std::set<work_key> scheduled;
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (const job& work : rows.row(rank)) {
      if (!is_compute(work.kind)) continue;
      scheduled.insert(key_of(work));
      const traced* const mine = orders.find(work);
      if (mine == nullptr || mine->rank != rank)
        return "no " + text(work) + " on rank " + std::to_string(rank) + another;
    }
  for (const traced& one : step)
    if (is_job(one) && one.what.kind != job_kind::recompute &&
        scheduled.count(key_of(one.what)) == 0)
      return text(one.what) + ", and the schedule has not" + another;
  return "";
}

}  // namespace

std::string broken_order(const measured_trace& trace, std::int64_t number, const job_rows& rows) {
  std::vector<traced> all = trace.step(number);
  std::erase_if(all, [](const traced& one) { return !is_message(one.what.kind) && !is_job(one); });
  const order_check orders(all);
  if (const std::string other = other_jobs(all, orders, rows); !other.empty())
    trace.fail("step " + std::to_string(number) + " has " + other);
  for (int rank = 0; rank < rows.ranks; ++rank) {
    // Nodes, of one job or a pair: each job of one comes after all of the one before.
    std::vector<job> before, node;
    for (const job& work : rows.row(rank)) {
      if (!is_compute(work.kind)) continue;
      for (const job& earlier : before) {
        const std::string wrong =
            order_check::after(*orders.find(earlier), *orders.find(work), "list");
        if (!wrong.empty()) return wrong;
      }
      const std::string wrong = orders.run(work);
      if (!wrong.empty()) return wrong;
      node.push_back(work);
      if (!work.paired) before = std::exchange(node, {});
    }
  }
  return "";
}

std::string broken_order(const measured_trace& trace, const job_rows& rows) {
  for (const std::int64_t number : trace.steps())
    if (std::string broken = broken_order(trace, number, rows); !broken.empty()) return broken;
  return "";
}

}  // namespace stretto::tool
