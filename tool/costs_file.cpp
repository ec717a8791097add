#include "costs_file.hpp"

#include <algorithm>

#include "errors.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::tool {

using nlohmann::json;

costs_file::costs_file(const std::string& path, job_table& table, std::int64_t whole_saves)
    : file_{"--costs", path},
      table_(table),
      whole_saves_(whole_saves),
      whole_given_(static_cast<std::size_t>(table.ranks * table.chunks)) {}

void costs_file::apply() {
  const json all = file_.parse();
  if (!all.is_object()) file_.fail("must hold one object");
  only(all, "the file", {"communication", "loss", "base", "limit", "jobs"});
  if (all.contains("communication"))
    table_.communication = file_.integer(all["communication"], "communication", 0, most_cost);
  if (all.contains("base")) table_.base = per_rank(all["base"], "base");
  if (all.contains("limit")) table_.limit = per_rank(all["limit"], "limit");
  if (all.contains("jobs")) {
    if (!all["jobs"].is_array()) file_.fail("jobs must be a list");
    int count = 0;
    for (const json& entry : all["jobs"]) job_entry(entry, "jobs[" + std::to_string(count++) + "]");
  }
  if (all.contains("loss")) loss_ = file_.integer(all["loss"], "loss", 0, most_cost);
  join_backwards();
}

void costs_file::only(const json& object, const std::string& place,
                      const std::vector<std::string_view>& keys) const {
  for (const auto& item : object.items())
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      file_.fail(place + " has an unknown key, \"" + item.key() + "\"");
}

std::vector<std::int64_t> costs_file::per_rank(const json& value, const std::string& place) const {
  const auto ranks = static_cast<std::size_t>(table_.ranks);
  if (!value.is_array()) return std::vector(ranks, file_.integer(value, place, 0, most_memory));
  if (value.size() != ranks)
    file_.fail(place + " has " + std::to_string(value.size()) + " entries for " +
               std::to_string(ranks) + " ranks");
  std::vector<std::int64_t> all;
  for (const json& one : value) all.push_back(file_.integer(one, place, 0, most_memory));
  return all;
}

job_kind costs_file::kind_of(const json& entry, const std::string& place) const {
  if (entry.contains("kind") && entry["kind"].is_string())
    for (int kind = 0; kind < cost_kinds; ++kind)
      if (letters(static_cast<job_kind>(kind)) == entry["kind"].get<std::string>())
        return static_cast<job_kind>(kind);
  file_.fail(place + " needs a kind: F, B, I, W, R, OFFLOAD or RELOAD");
}

void costs_file::job_entry(const json& entry, const std::string& place) {
  if (!entry.is_object()) file_.fail(place + " must be an object");
  only(entry, place, {"rank", "chunk", "kind", "cost", "change", "peak"});
  const job_kind kind = kind_of(entry, place);
  int ranks[2] = {0, table_.ranks - 1};
  int chunks[2] = {0, table_.chunks - 1};
  if (entry.contains("rank"))
    ranks[0] = ranks[1] =
        static_cast<int>(file_.integer(entry["rank"], place + ".rank", 0, table_.ranks - 1));
  if (entry.contains("chunk"))
    chunks[0] = chunks[1] =
        static_cast<int>(file_.integer(entry["chunk"], place + ".chunk", 0, table_.chunks - 1));
  for (int rank = ranks[0]; rank <= ranks[1]; ++rank)
    for (int chunk = chunks[0]; chunk <= chunks[1]; ++chunk) {
      job_cost& cost = table_.at(rank, chunk, kind);
      if (entry.contains("cost"))
        cost.time = file_.integer(entry["cost"], place + ".cost", 0, most_cost);
      if (entry.contains("change"))
        cost.change = file_.integer(entry["change"], place + ".change", -most_cost, most_cost);
      if (entry.contains("peak"))
        cost.peak = file_.integer(entry["peak"], place + ".peak", 0, most_cost);
      if (kind != job_kind::backward) continue;
      given_parts& given = whole_given_[static_cast<std::size_t>(rank * table_.chunks + chunk)];
      given.time = given.time || entry.contains("cost");
      given.memory = given.memory || entry.contains("change") || entry.contains("peak");
    }
}

void costs_file::join_backwards() {
  for (int rank = 0; rank < table_.ranks; ++rank)
    for (int chunk = 0; chunk < table_.chunks; ++chunk) {
      const given_parts& given =
          whole_given_[static_cast<std::size_t>(rank * table_.chunks + chunk)];
      const job_cost& input = table_.at(rank, chunk, job_kind::backward_input);
      const job_cost& weight = table_.at(rank, chunk, job_kind::backward_weight);
      job_cost& whole = table_.at(rank, chunk, job_kind::backward);
      if (!given.time) whole.time = input.time + weight.time - whole_saves_;
      if (given.memory) continue;
      whole.change = input.change + weight.change;
      whole.peak =
          std::max({std::int64_t{0}, input.peak, input.change, input.change + weight.peak});
    }
}

}  // namespace stretto::tool
