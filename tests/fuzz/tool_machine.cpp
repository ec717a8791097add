// A measured machine's file, of any bytes: what is read is written and read again as it was.
#include "fuzz/support/tool_file.hpp"
#include "tool/machine_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stretto::tool::measured_machine;
  fuzz::read_with(fuzz::text(data, size), [] {
    measured_machine read = measured_machine::read("--machine", "machine.json");
    const std::string text = read.json();
    const std::string header = read.header("stretto calibrate");
    // What it says of sizes on its axes, between and beyond them.
    for (const stretto::measured_kernel& kernel : read.view().kernels)
      for (const std::int64_t each : {1L, 17L, 1L << 12U, 1L << 20U})
        fuzz::require(kernel.time({each, each, each}) >= 0, "a time");
    fuzz::file_text() = text;
    measured_machine again = measured_machine::read("--machine", "machine.json");
    fuzz::require(again.json() == text && again.header("stretto calibrate") == header,
                  "what is written is read as it was");
  });
  return 0;
}
