#pragma once

// The page of results: Markdown, of what bench/gpu/run has left and of nothing else.

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "page_results.hpp"
#include "page_targets.hpp"

namespace stretto::bench {

//! A table, whose cells may hold anything.
class page_table {
 public:
  page_table(std::ostream& to, const std::vector<std::string>& heads) : to_(to) {
    row(heads);
    row(std::vector<std::string>(heads.size(), "---"));
  }
  void row(const std::vector<std::string>& cells) {
    for (const std::string& each : cells) to_ << "| " << plain(each) << ' ';
    to_ << "|\n";
  }

 private:
  static std::string plain(const std::string& text) {
    std::string made;
    for (const char each : text) {
      if (each == '|') made += '\\';
      made += each == '\n' ? ' ' : each;
    }
    return made;
  }
  std::ostream& to_;
};

//! Of a value that not every row has.
inline std::string shown(const fields& row, const std::string& key) {
  return row.has(key) ? shown(row.number(key)) : "";
}
//! As CUDA counts versions.
inline std::string version(double number) {
  const auto all = static_cast<int>(number);
  return std::to_string(all / 1000) + '.' + std::to_string(all % 1000 / 10);
}

//! What was measured, and on what.
inline void write_about(std::ostream& to, const results& from) {
  const fields about = from.about();
  to << "# Results on " << about.text("device") << "\n\nMeasured by `bench/gpu/run`, written by "
     << "`bench/gpu/page` from the files that it left:";
  std::string clocks;
  const char* between = " ";
  for (const std::string& name : results::names()) {
    if (!from.has(name)) continue;
    to << between << '`' << name << ".json`";
    between = ", ";
    if (!from.about(name).has("clock_mhz")) continue;
    const fields seen = from.about(name).object("clock_mhz");
    clocks += (clocks.empty() ? "" : "; ") + name + " " + shown(seen.number("least")) + " to " +
              shown(seen.number("most"));
  }
  to << ".\n\n";
  page_table table(to, {"", ""});
  table.row({"device", about.text("device")});
  table.row({"compute capability", about.text("compute_capability")});
  table.row({"multiprocessors", shown(about.number("multiprocessors"))});
  table.row({"memory, GiB", shown(about.number("memory_bytes") / (1 << 30))});
  table.row({"driver", about.text("driver") + ", of CUDA " + version(about.number("cuda_driver"))});
  table.row({"toolkit", "CUDA " + version(about.number("toolkit"))});
  if (from.has("overlap") && from.about("overlap").has("nccl")) {
    const auto nccl = static_cast<int>(from.about("overlap").number("nccl"));
    table.row({"NCCL", std::to_string(nccl / 10000) + '.' + std::to_string(nccl / 100 % 100) + '.' +
                           std::to_string(nccl % 100)});
  }
  table.row({"commit", about.text("commit")});
  table.row({"clock, MHz", clocks.empty() ? "not told" : clocks});
  if (about.has("globaltimer_step_ns"))
    table.row({"timer's step, ns", shown(about.number("globaltimer_step_ns"))});
}

//! What casts doubt on it.
inline void write_doubts(std::ostream& to, const results& from) {
  std::vector<std::string> all;
  const std::string device = from.about().text("device");
  const std::string commit = from.about().text("commit");
  if (device.find("H200") == std::string::npos)
    all.push_back("The targets are those of an H200, and this is none: " + device + ".");
  if (commit == "unknown") all.push_back("What commit was measured is not known.");
  if (commit.ends_with("-dirty"))
    all.push_back("What was measured is not the commit alone: its files had been changed.");
  for (const std::string& name : results::names()) {
    if (!from.has(name)) continue;
    for (const std::string& each : from.notes(name)) all.push_back("`" + name + "`: " + each);
  }
  to << "\n## What casts doubt on it\n\n";
  for (const std::string& each : all) to << "- " << each << '\n';
  if (all.empty()) to << "Nothing that the programs know of.\n";
}

inline void write_targets(std::ostream& to, const results& from) {
  to << "\n## Targets\n\n";
  page_table table(to, {"", "target", "measured", ""});
  for (const target& each : judge(from))
    table.row({each.what, each.wanted, each.measured, name_of(each.verdict)});
}

inline void write_tests(std::ostream& to, const results& from) {
  page_table table(to, {"test", "result", "seconds"});
  for (const fields& row : from.rows("tests"))
    table.row({row.text("test"), row.text("result"), shown(row.number("seconds"))});
}

inline void write_launch(std::ostream& to, const results& from) {
  to << "Medians in microseconds; the host's time of a call, or the device's from one to the next. "
        "Spread: between the quartiles. Beside them what others have measured.\n\n";
  page_table table(to, {"", "of the", "µs", "spread", "others", "measured on"});
  for (const fields& row : from.rows("launch"))
    table.row({row.text("what"), row.text("on"), shown(row.number("microseconds")),
               percent(row.number("spread")), row.text("reference"), row.text("source")});
  if (from.about("launch").has("queued_launches"))
    to << "\nLaunches that a stream takes until one waits: "
       << shown(from.about("launch").number("queued_launches")) << ".\n";
}

inline void write_overhead(std::ostream& to, const results& from) {
  to << "Stages that launch nothing; medians in microseconds. A replay is a graph of the step; one "
        "that is followed tells how far it is. The host's part of a step ends when all is issued, "
        "with its messages, or the replay launched; beside it what that is by job, what CUDA's "
        "calls for it take without the executor, the graph's nodes, and what it is by node.\n\n";
  page_table table(to, {"plan", "jobs", "messages", "issued", "of that the host's", "by job",
                        "calls alone", "replayed", "of that the host's", "nodes", "by node",
                        "followed", "of that the host's", "nodes", "by node"});
  for (const fields& row : from.rows("overhead")) {
    std::vector<std::string> cells = {row.text("plan")};
    for (const char* key :
         {"jobs", "messages", "issued_us", "issued_host_us", "issued_host_us_by_job",
          "calls_us_by_job", "replayed_us", "replayed_host_us", "replayed_nodes",
          "replayed_host_us_by_node", "followed_us", "followed_host_us", "followed_nodes",
          "followed_host_us_by_node"})
      cells.push_back(shown(row, key));
    table.row(cells);
  }
}

inline void write_overlap(std::ostream& to, const results& from) {
  to << "A matmul (m x n x k) and a communication at once, in the way that hides most of it. r: "
        "the "
        "matmul's time over the communication's, each alone. Ceiling: min(1, r); bound: the same "
        "when the communication takes its blocks' multiprocessors from the matmul. Late: how much, "
        "at most, a part of the communication is. Slower: the whole matmul, beside it, and alone "
        "with as many multiprocessors fewer as the communication has blocks.\n\n";
  page_table table(to, {"matmul", "communication", "blocks", "late, µs", "GB/s", "r", "ceiling",
                        "bound", "hidden", "in the way", "matmul slower", "alone"});
  for (const fields& row : from.rows("overlap")) {
    const std::vector<fields> ways = row.list("ways", "way");
    const fields* best = nullptr;
    for (const fields& each : ways)
      if (best == nullptr || each.number("hidden") > best->number("hidden")) best = &each;
    if (best == nullptr) continue;
    table.row({row.text("type") + " " + shown(row.number("m")) + " x " + shown(row.number("n")) +
                   " x " + shown(row.number("k")),
               row.text("communication"), shown(row.number("blocks")), shown(row.number("late_us")),
               shown(row.number("gb_s")), shown(row.number("r")), percent(row.number("ceiling")),
               percent(row.number("bound")), percent(best->number("hidden")),
               best->text("order") + ", margin " + shown(best->number("margin")) + ", pieces " +
                   shown(best->number("pieces")),
               percent(best->number("matmul_slowdown") - 1), percent(slowdown_in_margin(row))});
  }
}

//! @throws results_error
inline std::string page_of(const results& from) {
  struct section {
    const char* name;
    const char* title;
    void (*write)(std::ostream&, const results&);
  };
  constexpr section sections[] = {
      {"tests", "Tests", write_tests},
      {"launch", "Launches, events, graphs and memory", write_launch},
      {"overhead", "What the executor costs", write_overhead},
      {"overlap", "How much of a communication hides behind a matmul", write_overlap}};
  std::ostringstream made;
  write_about(made, from);
  write_doubts(made, from);
  write_targets(made, from);
  for (const section& each : sections) {
    made << "\n## " << each.title << "\n\n";
    if (!from.has(each.name))
      made << "Not measured: there is no `" << each.name << ".json`.\n";
    else if (from.rows(each.name).empty())
      made << "Not measured: `" << each.name << ".json` has no row.\n";
    else
      each.write(made, from);
  }
  return made.str();
}

}  // namespace stretto::bench
