// Where tensors lie inside the flat, 64-byte-aligned buffers that callers own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "model/config.hpp"
#include "model/matrix.hpp"

namespace train {

//! Every buffer, and every tensor within it, starts at a multiple of this many bytes: vectorised
//! sums then group their terms the same way wherever a buffer lies, which equality to the bit
//! needs.
inline constexpr std::size_t alignment_bytes = 64;

//! One tensor of a layer's parameters, in scalars from the start of the layer.
struct tensor {
  std::size_t offset = 0;
  std::size_t size = 0;
  bool decayed = false;  //!< weight decay applies: matrices yes, norms and biases no
  //! Of how many equal pieces the whole tensor is, where a model is in shards: a shard has its part
  //! of each. 0: every shard has the tensor whole.
  std::size_t pieces = 0;

  template <class Scalar>
  std::span<Scalar> of(std::span<Scalar> buffer) const {
    return buffer.subspan(offset, size);
  }
};

//! A matrix of a stash, in whatever the model's activations are held.
struct held_tensor {
  std::size_t offset = 0;  //!< in scalars of memory from the start of the stash
  std::size_t rows = 0, columns = 0;
  bool in_bf16 = false;

  template <class Scalar>
  held_matrix<Scalar> of(std::span<Scalar> stash) const {
    return {&stash[offset], in_bf16, rows, columns};
  }
  //! Its first rows.
  template <class Scalar>
  held_matrix<Scalar> of(std::span<Scalar> stash, std::size_t first_rows) const {
    return {&stash[offset], in_bf16, first_rows, columns};
  }
};

//! Deals out consecutive aligned tensors.
class tensor_layout {
 public:
  tensor take(std::size_t size, bool decayed = false, std::size_t pieces = 0) {
    const tensor result{end_, size, decayed, pieces};
    end_ += (size + granule - 1) / granule * granule;
    return result;
  }
  held_tensor take_held(const config& model, std::size_t rows, std::size_t columns) {
    return {take(model.held_scalars(rows * columns)).offset, rows, columns, model.in_bf16()};
  }
  std::size_t end() const { return end_; }

 private:
  // 16 scalars are 64 bytes of float and 128 of double.
  static constexpr std::size_t granule = alignment_bytes / sizeof(float);
  std::size_t end_ = 0;
};

//! A zeroed, aligned array that never moves.
template <class Scalar>
class aligned_array {
 public:
  aligned_array() = default;
  explicit aligned_array(std::size_t size)
      : data_(size == 0 ? nullptr
                        : static_cast<Scalar*>(::operator new (size * sizeof(Scalar),
                                                               std::align_val_t{alignment_bytes}))),
        size_(size) {
    std::fill_n(data_.get(), size_, Scalar{});
  }
  std::span<Scalar> span() { return {data_.get(), size_}; }
  std::span<const Scalar> span() const { return {data_.get(), size_}; }

 private:
  struct release {
    void operator()(Scalar* data) const {
      ::operator delete (data, std::align_val_t{alignment_bytes});
    }
  };
  std::unique_ptr<Scalar, release> data_;
  std::size_t size_ = 0;
};

//! Checks a caller's buffer: exact or sufficient size, and alignment.
//! @throws std::invalid_argument naming the buffer and the rule
template <class Scalar>
void check_buffer(const char* name, std::span<Scalar> buffer, std::size_t size, bool exact = true) {
  if (exact ? buffer.size() != size : buffer.size() < size) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(buffer.size()) +
                                " scalars, it needs " + (exact ? "" : "at least ") +
                                std::to_string(size));
  }
  if (reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment_bytes != 0) {
    throw std::invalid_argument(std::string(name) + " is not aligned to " +
                                std::to_string(alignment_bytes) + " bytes");
  }
}

}  // namespace train
