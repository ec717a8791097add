#include "costs_file.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "errors.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::tool {

using nlohmann::json;

namespace {

// Entries of all classes together; some 200 MB.
constexpr std::int64_t most_entries = std::int64_t{1} << 23U;

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
      spoken_of_(1),
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

std::vector<int> costs_file::chosen(const json& entry, const std::string& place, const char* key,
                                    int count) const {
  std::vector<int> all;
  if (!entry.contains(key)) {
    for (int each = 0; each < count; ++each) all.push_back(each);
    return all;
  }
  const json& which = entry[key];
  for (const json& one : which.is_array() ? which : json::array({which}))
    all.push_back(static_cast<int>(file_.integer(one, place + "." + key, 0, count - 1)));
  return all;
}

void costs_file::find_classes(const json& jobs) {
  if (std::none_of(jobs.begin(), jobs.end(), names_some)) return;
  std::vector<std::int32_t> class_of(static_cast<std::size_t>(microbatches_) *
                                     static_cast<std::size_t>(slices_));
  int number = 0;
  for (const json& entry : jobs) {
    const int mine = number++;
    if (!names_some(entry)) continue;
    const std::string place = "jobs[" + std::to_string(mine) + "]";
    const std::vector<int> slices = chosen(entry, place, "slice", slices_);
    std::map<std::int32_t, std::int32_t> parted;  // what each class's chosen ones are from now on
    std::vector<bool> seen(class_of.size());
    for (const int microbatch : chosen(entry, place, "microbatch", microbatches_))
      for (const int slice : slices) {
        const auto cell = static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(slices_) +
                          static_cast<std::size_t>(slice);
        if (seen[cell]) continue;
        seen[cell] = true;
        const auto [found, fresh] =
            parted.try_emplace(class_of[cell], static_cast<std::int32_t>(spoken_of_.size()));
        if (fresh) {
          spoken_of_.push_back(spoken_of_[static_cast<std::size_t>(class_of[cell])]);
          spoken_of_.back().insert(mine);
        }
        class_of[cell] = found->second;
      }
  }
  // Without those that nothing is left of.
  std::vector<std::int32_t> kept(spoken_of_.size(), -1);
  std::vector<std::set<int>> spoken;
  for (std::int32_t& one : class_of) {
    std::int32_t& at = kept[static_cast<std::size_t>(one)];
    if (at < 0) {
      at = static_cast<std::int32_t>(spoken.size());
      spoken.push_back(spoken_of_[static_cast<std::size_t>(one)]);
    }
    one = at;
  }
  const std::int64_t most = most_entries / table_.view().class_entries();
  if (static_cast<std::int64_t>(spoken.size()) > most)
    file_.fail("jobs tells " + std::to_string(spoken.size()) +
               " kinds of micro-batches or slices apart; with so many ranks and chunks at most " +
               std::to_string(most));
  spoken_of_ = std::move(spoken);
  for (std::size_t more = 1; more < spoken_of_.size(); ++more) table_.add_class();
  table_.classes = std::move(class_of);
  table_.slices = slices_;
  whole_given_.resize(whole_given_.size() * spoken_of_.size());
}

void costs_file::job_entry(const json& entry, const std::string& place, int number) {
  if (!entry.is_object()) file_.fail(place + " must be an object");
  only(entry, place, {"rank", "chunk", "microbatch", "slice", "kind", "cost", "change", "peak"});
  const job_kind kind = kind_of(entry, place);
  int ranks[2] = {0, table_.ranks - 1};
  int chunks[2] = {0, table_.chunks - 1};
  if (entry.contains("rank"))
    ranks[0] = ranks[1] =
        static_cast<int>(file_.integer(entry["rank"], place + ".rank", 0, table_.ranks - 1));
  if (entry.contains("chunk"))
    chunks[0] = chunks[1] =
        static_cast<int>(file_.integer(entry["chunk"], place + ".chunk", 0, table_.chunks - 1));
  const bool some = names_some(entry);
  for (int of = 0; of < static_cast<int>(spoken_of_.size()); ++of) {
    if (some && !spoken_of_[static_cast<std::size_t>(of)].contains(number)) continue;
    for (int rank = ranks[0]; rank <= ranks[1]; ++rank)
      for (int chunk = chunks[0]; chunk <= chunks[1]; ++chunk) {
        job_cost& cost = table_.at(of, rank, chunk, kind);
        if (entry.contains("cost"))
          cost.time = file_.integer(entry["cost"], place + ".cost", 0, most_cost);
        if (entry.contains("change"))
          cost.change = file_.integer(entry["change"], place + ".change", -most_cost, most_cost);
        if (entry.contains("peak"))
          cost.peak = file_.integer(entry["peak"], place + ".peak", 0, most_cost);
        if (kind != job_kind::backward) continue;
        given_parts& given = whole_given(of, rank, chunk);
        given.time = given.time || entry.contains("cost");
        given.memory = given.memory || entry.contains("change") || entry.contains("peak");
      }
  }
}

costs_file::given_parts& costs_file::whole_given(int of, int rank, int chunk) {
  return whole_given_[static_cast<std::size_t>((of * table_.ranks + rank) * table_.chunks + chunk)];
}

void costs_file::join_backwards() {
  for (int of = 0; of < static_cast<int>(spoken_of_.size()); ++of)
    for (int rank = 0; rank < table_.ranks; ++rank)
      for (int chunk = 0; chunk < table_.chunks; ++chunk) {
        const given_parts& given = whole_given(of, rank, chunk);
        const job_cost& input = table_.at(of, rank, chunk, job_kind::backward_input);
        const job_cost& weight = table_.at(of, rank, chunk, job_kind::backward_weight);
        job_cost& whole = table_.at(of, rank, chunk, job_kind::backward);
        if (!given.time) whole.time = input.time + weight.time - whole_saves_;
        if (given.memory) continue;
        whole.change = input.change + weight.change;
        whole.peak =
            std::max({std::int64_t{0}, input.peak, input.change, input.change + weight.peak});
      }
}

}  // namespace stretto::tool
