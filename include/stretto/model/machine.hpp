#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/model/measured.hpp"

namespace stretto {

//! What an op does, for a roofline or measured kernels.
struct op_work {
  std::int64_t flops = 0;    //!< of matrix products
  std::int64_t bytes = 0;    //!< read and written in the device's memory
  std::int64_t message = 0;  //!< bytes that leave the device, over its link to its peers
  kernel_sizes product{};    //!< rows, inner size and columns of each of its products; 0: unknown
  std::int64_t products = 1;
  std::int64_t far = 0;        //!< of `message`, what goes over the network, where that has a rate
  std::int64_t operand = 2;    //!< bytes of a number that products read: 1, 2 or 4

  constexpr bool operator==(const op_work&) const = default;
};

//! What a device reaches, for a roofline: rates per nanosecond, so that times are whole
//! nanoseconds. Rates are what is achieved, not what the data sheet promises. Where kernels were
//! measured there, their times come first, and the roofline serves for what they lack.
struct machine {
  std::string_view name;
  std::int64_t flops = 1;            //!< of matrix products in half precision, per ns
  std::int64_t memory = 1;           //!< bytes per ns, read and written together
  std::int64_t link = 1;             //!< bytes per ns and direction, to a peer of the same node
  std::int64_t launch = 0;           //!< ns before an op begins: its launch
  std::int64_t latency = 0;          //!< ns of a collective's or message's shortest way
  std::int32_t multiprocessors = 0;  //!< 0: communication takes no place from computation
  std::int32_t collective = 0;       //!< multiprocessors that a collective holds
  std::span<const measured_kernel> kernels{};
  std::int64_t network = 0;  //!< bytes per ns and direction, to other nodes; 0: as `link`
  std::int64_t single = 0;   //!< `flops` where products read single precision; 0: as many
  std::int64_t to_host = 0;  //!< bytes per ns and direction, to the host's memory; 0: unknown
  //! `flops` where products read FP8, which measured ones do not; 0: it has none, as many are told
  std::int64_t fp8 = 0;

  constexpr bool operator==(const machine& other) const {
    return name == other.name && flops == other.flops && memory == other.memory &&
           link == other.link && launch == other.launch && latency == other.latency &&
           multiprocessors == other.multiprocessors && collective == other.collective &&
           network == other.network && single == other.single && to_host == other.to_host &&
           fp8 == other.fp8 && detail::same_values(kernels, other.kernels);
  }

  //! @return null when it was not measured
  constexpr const measured_kernel* find_kernel(std::string_view called) const {
    for (const measured_kernel& one : kernels)
      if (one.name == called) return &one;
    return nullptr;
  }

  //! Of a measured kernel, its launch in it. @return 0 where there is none of that name
  constexpr std::int64_t kernel_time(const kernel_call& call) const {
    const measured_kernel* const found = find_kernel(call.kernel);
    return found == nullptr ? 0 : call.times * found->time(call.sizes);
  }

  //! @return of products that read numbers of so many bytes
  constexpr std::int64_t rate(std::int64_t operand) const {
    const std::int64_t other = operand == 4 ? single : operand == 1 ? fp8 : flops;
    return other > 0 ? other : flops;
  }

  //! As measured: its products, or what it moves, or its message and the way. By the roofline: the
  //! longest of the three.
  constexpr std::int64_t time(const op_work& work) const {
    const bool over_network = work.far > 0 && network > 0;
    if (!kernels.empty() && !over_network) {
      const kernel_call call = work.message > 0      ? kernel_call{"sum", {work.message}}
                               : work.product[0] > 0 ? kernel_call{"product", work.product,
                                                                   work.products}
                                                     : kernel_call{"move", {work.bytes}};
      const bool measured = work.product[0] == 0 || work.operand > 1;
      if (measured && find_kernel(call.kernel) != nullptr)
        return kernel_time(call) + (work.message > 0 ? latency : 0);
    }
    const auto over = [](std::int64_t amount, std::int64_t rate) {
      return (amount + rate - 1) / rate;
    };
    std::int64_t longest = over(work.flops, rate(work.operand));
    if (const std::int64_t other = over(work.bytes, memory); other > longest) longest = other;
    const std::int64_t far = over_network ? work.far : 0;
    if (const std::int64_t way = over(work.message - far, link); way > longest) longest = way;
    if (const std::int64_t way = far > 0 ? over(far, network) : 0; way > longest) longest = way;
    return longest + launch + (work.message > 0 ? latency : 0);
  }
};

//! Known devices. H200: measured rates of large bf16 products (788 TFLOP/s of random data), of
//! copies (4.3 TB/s) and of NVLink (370 GB/s one way). The others: their data sheets'
//! half-precision peak, memory and one-way NVLink rates, scaled by the shares of these that the
//! H200 was measured to reach (0.80, 0.90, 0.82). In single precision, by the same shares: TF32
//! where tensor cores have it, half as much; FP8, where they have that, twice. To the host: the
//! data sheets' PCIe, of 16 lanes, by the last share. Launch and latency: 3 us each. `host`: one
//! core of a small machine, in single precision; `stretto calibrate` measures yours.
inline constexpr machine machines[] = {
    {"h200", 788'000, 4'300, 370, 3'000, 3'000, 132, 8, {}, 0, 394'000, 52, 1'576'000},
    {"h100", 788'000, 3'000, 370, 3'000, 3'000, 132, 8, {}, 0, 394'000, 52, 1'576'000},
    {"a100", 250'000, 1'800, 246, 3'000, 3'000, 108, 8, {}, 0, 125'000, 26},
    {"v100", 100'000, 810, 123, 3'000, 3'000, 80, 8, {}, 0, 12'500, 13},
    {"host", 40, 8, 4, 500, 2'000, 0, 0},
};

//! @return null when there is no such device
constexpr const machine* find_machine(std::string_view name) {
  for (const machine& one : machines)
    if (one.name == name) return &one;
  return nullptr;
}

}  // namespace stretto
