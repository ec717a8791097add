#include "stretto/executor/cuda/error.hpp"

#include <string>

namespace stretto::executor::cuda {
namespace {

std::string text_of(cudaError_t code, const char* call) {
  std::string text = std::string(call) + ": " + cudaGetErrorName(code) + " (" +
                     std::to_string(static_cast<int>(code)) + "), " + cudaGetErrorString(code);
  if (is_sticky(code))
    text +=
        "; whatever call comes next tells of a kernel that failed, which may be of an earlier "
        "instruction (CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer finds it); the process cannot "
        "use "
        "the GPU any more and must be restarted";
  return text;
}

}  // namespace

bool is_sticky(cudaError_t code) noexcept {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
#if CUDART_VERSION >= 12080  // which has them first
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

error::error(cudaError_t code, const char* call)
    : std::runtime_error(text_of(code, call)), code_(code) {}

}  // namespace stretto::executor::cuda
