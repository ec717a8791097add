#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "json_file.hpp"
#include "stretto/model/cost.hpp"

namespace stretto::tool {

//! Reads the file of --costs into a table: see make_costs.
class costs_file {
 public:
  //! @param microbatches  that there are, each in so many slices
  //! @param whole_saves   time that a whole backward that no entry gives takes less than its halves
  costs_file(const std::string& path, job_table& table, int microbatches, int slices,
             std::int64_t whole_saves);

  //! @throws bad_input naming the file, the place in it and the rule
  void apply();
  //! What the loss takes; apply() does not add it.
  std::int64_t loss() const { return loss_; }

 private:
  //! What an entry says of a whole backward.
  struct given_parts {
    bool time = false;
    bool change = false;
    bool peak = false;
  };

  void only(const nlohmann::json& object, const std::string& place,
            const std::vector<std::string_view>& keys) const;
  //! What it says of hops between nodes, and of links.
  void nodes(const nlohmann::json& all);
  std::vector<std::int64_t> per_rank(const nlohmann::json& value, const std::string& place) const;
  job_kind kind_of(const nlohmann::json& entry, const std::string& place) const;
  //! Numbers of micro-batches or slices that an entry names: one, a list, or all.
  std::vector<int> chosen(const nlohmann::json& entry, const std::string& place, const char* key,
                          int count) const;
  //! Micro-batches times slices that an entry names, in order.
  std::vector<std::size_t> cells_of(const nlohmann::json& entry, const std::string& place) const;
  //! Tells apart those that the entries do, and gives each class its table.
  void find_classes(const nlohmann::json& jobs);
  //! @param number  of the entry
  void job_entry(const nlohmann::json& entry, const std::string& place, int number);
  given_parts& whole_given(int of, int rank, int chunk);
  //! What no entry gives of a whole backward is that of I, then W.
  void join_backwards();

  json_file file_;
  job_table& table_;
  int microbatches_;
  int slices_;
  std::int64_t whole_saves_;
  std::int64_t loss_ = 0;
  std::vector<int> all_classes_{0};
  std::vector<std::vector<int>> classes_of_;  // that an entry speaks of, of those that name some
  std::vector<given_parts> whole_given_;      // of each class's ranks and chunks
};

}  // namespace stretto::tool
