#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "command.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "make_step.hpp"
#include "numbers.hpp"
#include "read_step.hpp"
#include "stretto/lowering/streams/receive_lead.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/plan_text.hpp"
#include "stretto/plan/planned.hpp"

namespace stretto::tool {

namespace {

using nlohmann::ordered_json;

ordered_json json_of(const buffer& one) {
  return {{"offset", one.offset},         {"bytes", one.bytes},    {"stage", one.stage},
          {"microbatch", one.microbatch}, {"slice", one.slice},    {"role", name(one.role)},
          {"first", one.first},           {"release", one.release}};
}

ordered_json json_of(const plan_view& plan, const group_info& group) {
  ordered_json one{{"ranks", plan.members_of(group)},
                   {"elements", group.elements},
                   {"bytes", group.elements * (group.wide ? 8 : 4)}};
  if (group.stage >= 0) one["stage"] = group.stage;
  if (group.weights >= 0) one["weights_bytes"] = group.weights;
  return one;
}

ordered_json json_of(const plan_view& plan, std::int32_t index,
                     const std::vector<event_origin>& origins) {
  const instruction& mine = plan.instructions[static_cast<std::size_t>(index)];
  ordered_json waits = ordered_json::array();
  for (const event_wait& wait : plan.waits_of(mine))
    waits.push_back({{"event", wait.event},
                     {"instruction", origins[static_cast<std::size_t>(wait.event)].instruction},
                     {"reason", name(wait.why)},
                     {"previous_step", wait.previous_step}});
  ordered_json uses = ordered_json::array();
  std::int32_t use = mine.first_use;
  for (const buffer_use& each : plan.uses_of(mine)) {
    const byte_range part = plan.range_of(use++);
    uses.push_back(
        {{"buffer", each.buffer},
         {"access", name(each.mode)},
         {"role", name(each.role)},
         {"offset", plan.buffers[static_cast<std::size_t>(each.buffer)].offset + part.first},
         {"bytes", part.bytes}});
  }
  ordered_json one{{"index", index},
                   {"job", to_text(plan, index).view()},
                   {"stage", mine.what.stage},
                   {"kind", letters(mine.what.kind)},
                   {"microbatch", mine.what.microbatch},
                   {"slice", mine.what.slice},
                   {"paired", mine.what.paired},
                   {"action", name(mine.act)},
                   {"stream", name(plan.streams[mine.stream])}};
  if (mine.act == action::send || mine.act == action::receive) one["peer"] = mine.peer;
  if (is_collective(mine.act)) one["group"] = mine.peer;
  one["waits"] = std::move(waits);
  one["records"] = mine.record < 0 ? ordered_json() : ordered_json(mine.record);
  one["buffers"] = std::move(uses);
  one["releases"] = plan.released_before(mine);
  return one;
}

struct plan_command {
  step_options options;
  std::string bytes;
  std::string format = "text";
  std::string out = "-";
  std::optional<int> rank;
  bool data_parallel = false;
  int gathered = 0;

  void run() const {
    const step made = make_step(options, true);
    refuse_own_messages(made, options.csv);
    refuse_unplanned({made.made.where.ranks, made.microbatches, made.chunks, made.slices},
                     options.csv);
    if (rank && *rank >= made.made.where.ranks)
      throw bad_option("--rank", std::to_string(*rank),
                       "there " + std::string(made.made.where.ranks == 1 ? "is " : "are ") +
                           count_of(made.made.where.ranks, "rank") + ", numbered from 0");
    overlap::with_receive_lead<> streams;
    streams.lead = made.receive_lead;
    const planned plans(made.input(), streams, request(made.forward_only));
    if (plans.answer().why == reason::too_few_gathered)
      refuse_few_gathered(gathered, made.schedule);
    if (!plans.answer().ok())
      throw broken_schedule(made.schedule +
                            ", as a plan: " + std::string(to_text(plans.answer()).view()));
    const std::span<const plan_view> all = plans.plans();
    const std::span<const plan_view> asked =
        rank ? all.subspan(static_cast<std::size_t>(*rank), 1) : all;
    write_file("-o", out, [&](std::ostream& to) {
      format == "json" ? print_json(made, asked, to) : print(made, asked, to);
    });
  }

 private:
  plan_request request(bool forward_only) const {
    plan_request asked;
    asked.train = !forward_only;
    asked.data_parallel = data_parallel || gathered > 0;
    asked.gathered = gathered;
    if (bytes.empty()) return asked;
    const auto put = [&](std::span<const std::int64_t> given) {
      asked.stages = {
          {.output = given[0], .stash = given[1], .gradients = given[3], .kept = given[2]}};
      if (given.size() > 4) asked.stages[0].weights = given[4];
    };
    if (std::ranges::count(bytes, ',') < 4)
      put(read_numbers<4>("--bytes", bytes, "M,S,K,G, or 5, M,S,K,G,W", 0));
    else
      put(read_numbers<5>("--bytes", bytes, "M,S,K,G,W", 0));
    return asked;
  }

  // Rank by rank, for as text they may not fit the memory together.
  static void print(const step& made, std::span<const plan_view> plans, std::ostream& to) {
    to << made.title << '\n';
    for (const plan_view& plan : plans) {
      std::string text = "\n";
      write_plan(plan, text);
      to << text;
    }
  }
  static void print_json(const step& made, std::span<const plan_view> plans, std::ostream& to) {
    ordered_json head{
        {"schedule", made.schedule},          {"ranks", made.made.where.ranks},
        {"microbatches", made.microbatches},  {"slices", made.slices},
        {"stages", made.made.where.stages()}, {"digest", digest_text(plans.front().digest)}};
    if (made.receive_lead >= 0) head["receive_lead"] = made.receive_lead;
    const std::string first = head.dump(1);
    to << first.substr(0, first.size() - 2) << ",\n \"plans\": [";  // but its "\n}"
    for (const plan_view& plan : plans) {
      to << (&plan == plans.data() ? "" : ",") << "\n  {\"rank\": " << plan.rank
         << ", \"events\": " << plan.events << ", \"waits\": " << plan.waits.size()
         << ", \"arena_bytes\": " << plan.arena_bytes << ", \"host_bytes\": " << plan.host_bytes;
      list(to, "streams", plan.streams, [](const stream_info& one) {
        return ordered_json{{"name", name(one)}, {"priority", one.priority}};
      });
      list(to, "groups", plan.groups, [&](const group_info& one) { return json_of(plan, one); });
      list(to, "buffers", plan.buffers, [](const buffer& one) { return json_of(one); });
      const std::vector<event_origin> origins = origins_of(plan);
      list(to, "instructions", plan.instructions, [&](const instruction& one) {
        return json_of(plan, static_cast<std::int32_t>(&one - plan.instructions.data()), origins);
      });
      to << "}";
    }
    to << "\n ]\n}\n";
  }
  //! An entry a line.
  template <class Entry, class Json>
  static void list(std::ostream& to, const char* key, std::span<const Entry> all,
                   const Json& json) {
    to << ",\n   \"" << key << "\": [";
    for (const Entry& one : all) to << (&one == all.data() ? "\n    " : ",\n    ") << json(one);
    to << "]";
  }
};

}  // namespace

void add_plan(CLI::App& app) {
  auto* command = app.add_subcommand(
      "plan", "What each rank is given to run: instructions, streams, events, buffers, releases");
  const auto mine = std::make_shared<plan_command>();
  mine->options.add(*command);
  command->add_option("--rank", mine->rank, "Of this rank alone, from 0 (default: of all)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  command->add_option(
      "--bytes", mine->bytes,
      "Bytes of a stage M,S,K,G or M,S,K,G,W: a message; what a forward saves for its "
      "backward; what it saves beside that for the backward for the weights; gradients "
      "that replicas sum; weights that they gather (default 64,64,0,64,64)");
  command->add_flag(
      "--data-parallel", mine->data_parallel,
      "Each stage's gradients are summed over data-parallel replicas, which share the "
      "plan of their rank");
  command
      ->add_option(
          "--gathered", mine->gathered,
          "They hold a part of each stage's weights each, and gather those of so many stages "
          "at once that come next (ZeRO-3, FSDP; with --data-parallel, which goes without "
          "saying)")
      ->check(CLI::Range(1, 1 << 20).description(""));
  command->add_option("--format", mine->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->footer(
      "A line for each instruction, in the order in which it is issued: its number, what it does "
      "and\n"
      "on which stream, the event that it records when it is done; what it waits for, with the "
      "reason\n"
      "(data: a buffer is written before it is read, or read before it is overwritten; gate: the "
      "step\n"
      "before has ended; bound: the step's end comes after all in it; lead: see --receive-lead); "
      "its\n"
      "buffers by access, number, role, offset in the arena and bytes; what is released before "
      "it.\n" +
      exits);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
