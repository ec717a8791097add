// What the first GPU is, as JSON on one line; exits with 2 where there is none.
#include <cstdio>
#include <exception>

#include "gpu.hpp"

int main() {
  using namespace stretto;
  try {
    if (executor::cuda_device_count() == 0) return 2;
    bench::report made("about", bench::about_gpu());
    bench::clock_check().tell(made);
    std::puts(made.all()["about"].dump().c_str());
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "gpu_about: %s\n", wrong.what());
    return 1;
  }
}
