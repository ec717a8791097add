#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace tool_tests {

//! What the executor measures of 1F1B with two ranks and a micro-batch, in microseconds.
inline nlohmann::json measured_step() {
  using nlohmann::json;
  json events = json::array();
  const auto add = [&](int rank, int stream, const char* name, const char* category, double from,
                       double to) {
    events.push_back({{"ph", "X"},
                      {"name", name},
                      {"cat", category},
                      {"pid", rank},
                      {"tid", stream},
                      {"ts", from},
                      {"dur", to - from},
                      {"args", {{"step", 7}, {"instruction", 0}}}});
  };
  for (int rank = 0; rank < 2; ++rank)
    for (const auto& [stream, name] : {std::pair(0, "compute"), {1, "send_next"}, {2, "receive"}})
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", rank},
                        {"tid", stream},
                        {"args", {{"name", name}}}});
  add(0, 0, "0F0", "compute", 10, 20);
  add(0, 1, "0SEND_F0", "send", 20, 22);
  add(1, 2, "1RECV_F0", "receive", 5, 22.5);
  add(1, 0, "1F0 op 0", "compute", 23, 30);
  add(1, 1, "1F0 op 1", "collective", 30, 31);  // a sum between its ops
  add(1, 0, "1F0 op 2", "compute", 31, 33);
  add(1, 0, "1B0", "compute", 33, 53);
  add(1, 1, "1SEND_B0", "send", 53, 60);
  add(0, 2, "0RECV_B0", "receive", 22, 60);
  add(0, 0, "0B0", "compute", 60, 81);
  add(0, 0, "0OPTIMIZER", "compute", 82, 84);
  return {{"traceEvents", events}};
}
inline nlohmann::json& event(nlohmann::json& trace, const std::string& name) {
  for (nlohmann::json& one : trace["traceEvents"])
    if (one["name"] == name) return one;
  throw std::out_of_range(name);
}

}  // namespace tool_tests
