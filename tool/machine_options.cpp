#include "machine_options.hpp"

#include <CLI/CLI.hpp>

#include "errors.hpp"

namespace stretto::tool {

namespace {

std::string device_names() {
  std::string names;
  for (const machine& one : machines) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

}  // namespace

void machine_options::add(CLI::App& command, const std::string& others) {
  auto* named =
      command.add_option("--device", device, "Whose rates a roofline takes: " + device_names())
          ->capture_default_str();
  command
      .add_option("--machine", path,
                  "File of a machine, in place of a device: measured by stretto calibrate, or its "
                  "rates alone")
      ->excludes(named);
  command
      .add_option("--network", network,
                  "GB/s each way to devices of other nodes, where " + others +
                      "experts are (default: as near ones)")
      ->check(CLI::Range(1, 1 << 20).description(""));
  command.add_flag("--copy-engine", copy_engine,
                   "Communication takes no multiprocessors from computation");
}

machine machine_options::settle() {
  machine on;
  if (path.empty()) {
    const machine* known = find_machine(device);
    if (known == nullptr)
      throw bad_option("--device", device, "no such device; there are " + device_names());
    on = *known;
  } else {
    measured_ = measured_machine::read("--machine", path);
    on = measured_.view();
    device = measured_.name;
  }
  on.network = network;
  if (copy_engine) on.multiprocessors = on.collective = 0;
  return on;
}

}  // namespace stretto::tool
