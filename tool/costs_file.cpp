#include "costs_file.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "errors.hpp"
#include "numbers.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::tool {

using nlohmann::json;

namespace {

bool names_some(const json& entry) {
  return entry.is_object() && (entry.contains("microbatch") || entry.contains("slice"));
}

}  // namespace

costs_file::costs_file(const std::string& path, job_table& table, int microbatches, int slices,
                       std::int64_t whole_saves)
    : file_{"--costs", path},
      table_(table),
      microbatches_(microbatches),
      slices_(slices),
      whole_saves_(whole_saves),
      whole_given_(static_cast<std::size_t>(table.ranks * table.chunks)) {}

void costs_file::apply() {
  const json all = file_.parse();
  if (!all.is_object()) file_.fail("must hold one object");
  only(all, "the file",
       {"communication", "node_ranks", "between_nodes", "serial_links", "loss", "base", "limit",
        "jobs"});
  if (all.contains("communication"))
    table_.communication = file_.integer(all["communication"], "communication", 0, most_cost);
  nodes(all);
  if (all.contains("base")) table_.base = per_rank(all["base"], "base");
  if (all.contains("limit")) table_.limit = per_rank(all["limit"], "limit");
  if (all.contains("jobs")) {
    if (!all["jobs"].is_array()) file_.fail("jobs must be a list");
    find_classes(all["jobs"]);
    int count = 0;
    for (const json& entry : all["jobs"]) {
      job_entry(entry, "jobs[" + std::to_string(count) + "]", count);
      ++count;
    }
  }
  if (all.contains("loss")) loss_ = file_.integer(all["loss"], "loss", 0, most_cost);
  join_backwards();
}

void costs_file::nodes(const json& all) {
  if (all.contains("node_ranks") != all.contains("between_nodes"))
    file_.fail(
        "node_ranks and between_nodes belong together: how many ranks a node has, and what a "
        "hop to another takes");
  if (all.contains("node_ranks")) {
    table_.node_ranks =
        static_cast<int>(file_.integer(all["node_ranks"], "node_ranks", 1, most_node_ranks));
    table_.between_nodes = file_.integer(all["between_nodes"], "between_nodes", 0, most_cost);
  }
  if (!all.contains("serial_links")) return;
  if (!all["serial_links"].is_boolean()) file_.fail("serial_links must be true or false");
  table_.serial_links = all["serial_links"].get<bool>();
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
      if (const auto known = static_cast<job_kind>(kind);
          letters(known) == entry["kind"].get<std::string>())
        return known;
  file_.fail(place + " needs a kind: F, B, I, W, R, OFFLOAD, RELOAD, REDUCE_GRAD or UNSHARD" +
             (entry.contains("kind") ? ", and has " + entry["kind"].dump() : std::string()));
}

std::vector<int> costs_file::chosen(const json& entry, const std::string& place, const char* key,
                                    int count) const {
  std::vector<int> all;
  if (!entry.contains(key)) {
    all.resize(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const json& which = entry[key];
  if (which.is_array() && which.empty()) file_.fail(place + "." + key + " names none");
  for (const json& one : which.is_array() ? which : json::array({which}))
    all.push_back(static_cast<int>(file_.integer(one, place + "." + key, 0, count - 1)));
  return all;
}

std::vector<std::size_t> costs_file::cells_of(const json& entry, const std::string& place) const {
  const std::vector<int> slices = chosen(entry, place, "slice", slices_);
  std::vector<std::size_t> cells;
  for (const int microbatch : chosen(entry, place, "microbatch", microbatches_))
    for (const int slice : slices)
      cells.push_back(static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(slices_) +
                      static_cast<std::size_t>(slice));
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return cells;
}

void costs_file::find_classes(const json& jobs) {
  classes_of_.resize(jobs.size());
  if (std::none_of(jobs.begin(), jobs.end(), names_some)) return;
  struct found_class {
    std::int64_t cells = 0;
    std::vector<int> entries{};  // that speak of it, of those that name some
  };
  std::vector<found_class> found(1);
  found[0].cells = std::int64_t{microbatches_} * slices_;
  std::vector<std::int32_t> class_of(static_cast<std::size_t>(found[0].cells));
  const std::int64_t most = most_entries / table_.view().class_entries();
  // Of one entry; here, because there are as many entries as classes.
  std::vector<std::int64_t> named;  // cells of each class
  std::vector<std::int32_t> those;  // that are named
  for (int number = 0; number < static_cast<int>(jobs.size()); ++number) {
    const json& entry = jobs[static_cast<std::size_t>(number)];
    if (!names_some(entry)) continue;
    const std::vector<std::size_t> cells = cells_of(entry, "jobs[" + std::to_string(number) + "]");
    named.resize(found.size());
    for (const std::size_t cell : cells)
      if (++named[static_cast<std::size_t>(class_of[cell])] == 1) those.push_back(class_of[cell]);
    std::sort(those.begin(), those.end());
    // A class that is named as a whole stays one; of another a part leaves it.
    std::map<std::int32_t, std::int32_t> leaves_for;
    for (const std::int32_t old : std::exchange(those, {})) {
      const std::int64_t count = std::exchange(named[static_cast<std::size_t>(old)], 0);
      std::int32_t mine = old;
      if (count < found[static_cast<std::size_t>(old)].cells) {
        mine = static_cast<std::int32_t>(found.size());
        if (mine >= most)
          file_.fail("jobs tells more than " + std::to_string(most) +
                     " kinds of micro-batches or slices apart, of so many ranks and chunks");
        found[static_cast<std::size_t>(old)].cells -= count;
        found.push_back({count, found[static_cast<std::size_t>(old)].entries});
        leaves_for[old] = mine;
      }
      found[static_cast<std::size_t>(mine)].entries.push_back(number);
    }
    if (leaves_for.empty()) continue;
    for (const std::size_t cell : cells)
      if (const auto to = leaves_for.find(class_of[cell]); to != leaves_for.end())
        class_of[cell] = to->second;
  }
  for (std::size_t of = 0; of < found.size(); ++of) {
    if (of > 0) table_.add_class();
    for (const int number : found[of].entries)
      classes_of_[static_cast<std::size_t>(number)].push_back(static_cast<int>(of));
  }
  table_.classes = std::move(class_of);
  table_.slices = slices_;
  all_classes_.resize(found.size());
  std::iota(all_classes_.begin(), all_classes_.end(), 0);
  whole_given_.resize(whole_given_.size() * found.size());
}

void costs_file::job_entry(const json& entry, const std::string& place, int number) {
  if (!entry.is_object()) file_.fail(place + " must be an object");
  only(entry, place, {"rank", "chunk", "microbatch", "slice", "kind", "cost", "change", "peak"});
  const job_kind kind = kind_of(entry, place);
  const bool gathers = kind == job_kind::unshard;
  if (is_of_stage(kind))
    for (const std::string_view key : {"microbatch", "slice", "peak", "change"})
      if (entry.contains(key) && !(gathers && key == "change"))
        file_.fail(place + "." + std::string(key) + ": " +
                   (gathers
                        ? "an UNSHARD is of all micro-batches, and has a cost and a change alone"
                        : "a REDUCE_GRAD is of all micro-batches, and has a cost alone"));
  int ranks[2] = {0, table_.ranks - 1};
  int chunks[2] = {0, table_.chunks - 1};
  if (entry.contains("rank"))
    ranks[0] = ranks[1] =
        static_cast<int>(file_.integer(entry["rank"], place + ".rank", 0, table_.ranks - 1));
  if (entry.contains("chunk"))
    chunks[0] = chunks[1] =
        static_cast<int>(file_.integer(entry["chunk"], place + ".chunk", 0, table_.chunks - 1));
  // Once, whatever the number of classes.
  const auto read = [&](const char* key, std::int64_t least) {
    std::optional<std::int64_t> value;
    if (entry.contains(key))
      value = file_.integer(entry[key], place + "." + key, least, most_cost);
    return value;
  };
  const std::optional<std::int64_t> time = read("cost", 0);
  const std::optional<std::int64_t> change = read("change", gathers ? 0 : -most_cost);
  const std::optional<std::int64_t> peak = read("peak", 0);
  if (!time && !change && !peak)
    file_.fail(place + " sets nothing: it has no cost" +
               (gathers             ? " and no change"
                : is_of_stage(kind) ? ""
                                    : ", no change and no peak"));
  for (const int of :
       names_some(entry) ? classes_of_[static_cast<std::size_t>(number)] : all_classes_) {
    for (int rank = ranks[0]; rank <= ranks[1]; ++rank)
      for (int chunk = chunks[0]; chunk <= chunks[1]; ++chunk) {
        job_cost& cost = table_.at(of, rank, chunk, kind);
        cost.time = time.value_or(cost.time);
        cost.change = change.value_or(cost.change);
        cost.peak = peak.value_or(cost.peak);
        if (kind != job_kind::backward) continue;
        given_parts& given = whole_given(of, rank, chunk);
        given.time = given.time || time;
        given.change = given.change || change;
        given.peak = given.peak || peak;
      }
  }
}

costs_file::given_parts& costs_file::whole_given(int of, int rank, int chunk) {
  return whole_given_[static_cast<std::size_t>((of * table_.ranks + rank) * table_.chunks + chunk)];
}

void costs_file::join_backwards() {
  for (const int of : all_classes_)
    for (int rank = 0; rank < table_.ranks; ++rank)
      for (int chunk = 0; chunk < table_.chunks; ++chunk) {
        const given_parts& given = whole_given(of, rank, chunk);
        const job_cost& input = table_.at(of, rank, chunk, job_kind::backward_input);
        const job_cost& weight = table_.at(of, rank, chunk, job_kind::backward_weight);
        job_cost& whole = table_.at(of, rank, chunk, job_kind::backward);
        if (!given.time) whole.time = input.time + weight.time - whole_saves_;
        if (!given.change) whole.change = input.change + weight.change;
        if (!given.peak)
          whole.peak =
              std::max({std::int64_t{0}, input.peak, input.change, input.change + weight.peak});
      }
}

}  // namespace stretto::tool
