#include "model/kernels.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include "model/algebra.hpp"
#include "model/attention.hpp"
#include "model/cross_entropy.hpp"
#include "model/embedding.hpp"
#include "model/gelu.hpp"
#include "model/host_math.hpp"
#include "model/norm.hpp"
#include "model/random.hpp"
#include "model/tensor.hpp"

namespace train {
namespace {

using stretto::kernel_call;
using stretto::kernel_sizes;
using prepared = std::function<void()>;

std::size_t at(const kernel_sizes& sizes, std::size_t axis) {
  return static_cast<std::size_t>(sizes[axis]);
}

//! Operands with numbers as they are met in training, kept as long as the kernel that uses them.
class operand {
 public:
  explicit operand(std::size_t size) : data_(std::make_shared<aligned_array<float>>(size)) {
    random_stream numbers(1, static_cast<int>(size % 1000), 0);
    // Drawing each number would take longer than most kernels do.
    constexpr std::size_t drawn = 1024;
    for (std::size_t each = 0; each < size; ++each)
      get()[each] = each < drawn ? static_cast<float>(numbers.normal()) : get()[each - drawn];
  }
  float* get() const { return data_->span().data(); }
  std::span<float> span() const { return data_->span(); }
  matrix_view<float> view(std::size_t rows, std::size_t columns) const {
    return matrix(get(), rows, columns);
  }
  matrix_view<const float> read(std::size_t rows, std::size_t columns) const {
    return matrix<const float>(get(), rows, columns);
  }

 private:
  std::shared_ptr<aligned_array<float>> data_;
};

enum class form { plain, by_transposed, transposed };

template <form Form>
prepared product(const kernel_sizes& sizes) {
  const std::size_t rows = at(sizes, 0), inner = at(sizes, 1), columns = at(sizes, 2);
  return [=, left = operand(rows * inner), right = operand(inner * columns),
          result = operand(rows * columns)] {
    auto to = result.view(rows, columns);
    if constexpr (Form == form::plain)
      assign_product(to, left.read(rows, inner), right.read(inner, columns));
    else if constexpr (Form == form::by_transposed)
      assign_product(to, left.read(rows, inner), right.read(columns, inner).transpose());
    else
      add_product(to, left.read(inner, rows).transpose(), right.read(inner, columns));
  };
}

//! A kernel of rows by columns, from operands of that size and of one row.
template <class Run>
prepared by_rows(const kernel_sizes& sizes, Run run) {
  const std::size_t rows = at(sizes, 0), columns = at(sizes, 1);
  return [=, a = operand(rows * columns), b = operand(rows * columns), c = operand(rows * columns),
          d = operand(rows * columns), row = operand(2 * columns), per_row = operand(rows)] {
    run(a.view(rows, columns), b.view(rows, columns), c.view(rows, columns), d.view(rows, columns),
        row.get(), per_row.get());
  };
}

using view = matrix_view<float>;

matrix_view<const float> constant(const view& of) {
  return matrix<const float>(of.data(), static_cast<std::size_t>(of.rows()),
                             static_cast<std::size_t>(of.cols()));
}
auto first_row(float* row, const view& like) {
  return row_vector(row, static_cast<std::size_t>(like.cols()));
}

prepared bias(const kernel_sizes& sizes) {
  return by_rows(sizes, [](view a, view, view, view, float* row, float*) {
    a.rowwise() += first_row(row, a);
  });
}
prepared residual(const kernel_sizes& sizes) {
  return by_rows(sizes, [](view a, view b, view c, view, float* row, float*) {
    a = (b.rowwise() + first_row(row, a)) + c;
  });
}
prepared gelu_kernel(const kernel_sizes& sizes) {
  return by_rows(
      sizes, [](view a, view b, view c, view, float*, float*) { gelu<float>(constant(a), b, c); });
}
prepared norm(const kernel_sizes& sizes) {
  return by_rows(sizes, [](view a, view b, view c, view, float* row, float* per_row) {
    norm_forward<float>(row, row + a.cols(), constant(a), b, per_row, c);
  });
}
prepared norm_back(const kernel_sizes& sizes) {
  return by_rows(sizes, [](view a, view b, view c, view d, float* row, float* per_row) {
    norm_backward_input<float>(row, constant(a), per_row, constant(b), constant(c), d);
  });
}
prepared norm_weights(const kernel_sizes& sizes) {
  return by_rows(sizes, [](view a, view b, view, view, float* row, float*) {
    norm_backward_weight<float>(constant(a), constant(b), row, row + a.cols());
  });
}
prepared multiply(const kernel_sizes& sizes) {
  return by_rows(sizes, [](view a, view b, view, view, float*, float*) {
    if (b(0, 0) != 1) b.setOnes();  // or the products would leave the range of numbers
    a.array() *= b.array();
  });
}
prepared row_sums(const kernel_sizes& sizes) {
  return by_rows(sizes, [](view a, view, view, view, float* row, float*) {
    add_rows<float>(row, constant(a));
  });
}

std::vector<std::uint8_t> drawn_tokens(std::size_t count, std::size_t vocabulary) {
  std::vector<std::uint8_t> made(count);
  for (std::size_t each = 0; each < count; ++each)
    made[each] = static_cast<std::uint8_t>(each * 37 % vocabulary);
  return made;
}

prepared loss(const kernel_sizes& sizes) {
  const std::size_t vocabulary = at(sizes, 1);
  return [=, logits = operand(at(sizes, 0) * vocabulary),
          targets = drawn_tokens(at(sizes, 0), vocabulary)] {
    cross_entropy(logits.get(), targets, vocabulary, 1e-3);
  };
}

//! As many heads beside each other as attention may find.
constexpr int heads = 4;

config attention_of(const kernel_sizes& sizes) {
  return {.width = heads * static_cast<int>(sizes[1]),
          .heads = heads,
          .context = static_cast<int>(sizes[0]),
          .microbatch = 1};
}

prepared attention(const kernel_sizes& sizes) {
  const attention_shape shape(attention_of(sizes));
  const std::size_t values = shape.length * shape.width;
  return [=, joint = operand(3 * values), weights = operand(shape.squares() * shape.context),
          mixed = operand(values)] {
    std::uint64_t count = 0;
    attention_forward<float>({host_math<float>(), count}, shape,
                             {{joint.get(), false, shape.length, 3 * shape.width}},
                             {weights.get(), false, shape.squares(), shape.context},
                             {mixed.get(), false, shape.length, shape.width});
  };
}
prepared attention_back(const kernel_sizes& sizes) {
  const attention_shape shape(attention_of(sizes));
  const std::size_t values = shape.length * shape.width;
  return [=, joint = operand(3 * values), weights = operand(shape.squares() * shape.context),
          gradient = operand(values), scratch = operand(shape.length * shape.context),
          result = operand(3 * values)] {
    std::uint64_t count = 0;
    attention_backward<float>({host_math<float>(), count}, shape,
                              {{joint.get(), false, shape.length, 3 * shape.width}},
                              {weights.get(), false, shape.squares(), shape.context},
                              {gradient.get(), false, shape.length, shape.width}, scratch.get(),
                              {{result.get(), false, shape.length, 3 * shape.width}}, true);
  };
}

template <bool Backward>
prepared embed(const kernel_sizes& sizes) {
  const config model{.width = static_cast<int>(sizes[1]),
                     .heads = 1,
                     .context = static_cast<int>(sizes[0]),
                     .microbatch = 1};
  const embedding<float> layer(model);
  return [=, parameters = operand(layer.parameter_scalars()),
          values = operand(model.activation_scalars()), tokens = drawn_tokens(model.rows(), 256)] {
    std::uint64_t count = 0;
    const counted_math<float> by(host_math<float>(), count);
    if constexpr (Backward)
      layer.backward_weight(by, tokens, values.span(), parameters.span(), 0);
    else
      layer.forward(by, parameters.span(), tokens, values.span(), 0);
  };
}

prepared move(const kernel_sizes& sizes) {
  const std::size_t scalars = (at(sizes, 0) + 7) / 8;  // read and written
  return [=, from = operand(scalars), to = operand(scalars)] {
    std::ranges::copy(from.span(), to.get());
  };
}
prepared sum(const kernel_sizes& sizes) {
  const std::size_t scalars = (at(sizes, 0) + 3) / 4;
  return [=, from = operand(scalars), to = operand(scalars)] {
    row_vector(to.get(), scalars) += row_vector(from.get(), scalars);
  };
}

//! What a kernel is called where its operands come from afar; its name, where they never do.
std::string_view from_afar(std::string_view name) {
  constexpr std::string_view twins[][2] = {
      {"product", "product, from afar"},
      {"product by transposed", "product by transposed, from afar"},
      {"transposed product", "transposed product, from afar"},
      {"gelu", "gelu, from afar"},
      {"multiply", "multiply, from afar"},
      {"norm", "norm, from afar"},
      {"norm back", "norm back, from afar"},
      {"norm weights", "norm weights, from afar"},
      {"embed", "embed, from afar"},
      {"embed weights", "embed weights, from afar"}};
  for (const auto& twin : twins)
    if (twin[0] == name) return twin[1];
  return name;
}

}  // namespace

std::vector<kernel> kernels(bool few) {
  using sizes = std::vector<std::int64_t>;
  const sizes product_axis = few ? sizes{16, 64} : sizes{16, 32, 64, 128, 256, 512, 1024};
  const sizes row_axis = few ? sizes{16, 64} : sizes{16, 64, 256, 1024};
  const sizes column_axis = few ? sizes{16, 64} : sizes{16, 64, 256, 1024};
  const sizes length_axis = few ? sizes{16, 32} : sizes{16, 32, 64, 128, 256, 512};
  const sizes feature_axis = few ? sizes{16, 32} : sizes{8, 16, 32, 64, 128};
  const sizes byte_axis =
      few ? sizes{1024, 65536} : sizes{1024, 16384, 131072, 1048576, 8388608, 33554432};
  const std::vector<sizes> cube(3, product_axis);
  const std::vector<sizes> rectangle{row_axis, column_axis};
  const std::vector<sizes> of_head{length_axis, feature_axis};
  // A backward for the weights comes long after what it reads was written.
  constexpr std::int64_t soon = 2 << 20, late = 6 << 20;
  std::vector<kernel> all{{"product", cube, product<form::plain>, 1, soon},
                          {"product by transposed", cube, product<form::by_transposed>, 1, soon},
                          {"transposed product", cube, product<form::transposed>, 1, late},
                          {"bias", rectangle, bias},
                          {"residual", rectangle, residual},
                          {"gelu", rectangle, gelu_kernel, 1, soon},
                          {"multiply", rectangle, multiply, 1, soon},
                          {"row sums", rectangle, row_sums},
                          {"norm", rectangle, norm, 1, soon},
                          {"norm back", rectangle, norm_back, 1, soon},
                          {"norm weights", rectangle, norm_weights, 1, late},
                          {"attention of a head", of_head, attention, heads},
                          {"attention of a head back", of_head, attention_back, heads},
                          {"loss", {row_axis, few ? sizes{16, 64} : sizes{16, 64, 256}}, loss},
                          {"embed", rectangle, embed<false>, 1, late},
                          {"embed weights", rectangle, embed<true>, 1, late},
                          {"move", {byte_axis}, move, 1, soon},
                          {"sum", {byte_axis}, sum, 1, soon}};
  // In a larger stage four times as much lies between.
  for (std::size_t at = 0, count = all.size(); at < count; ++at)
    if (const std::string_view far = from_afar(all[at].name); far != all[at].name) {
      kernel twin = all[at];
      twin.name = far;
      twin.between *= 4;
      all.push_back(std::move(twin));
    }
  return all;
}

std::string_view missing_kernel(const stretto::machine& on) {
  for (const kernel& each : kernels(true))
    if (on.find_kernel(each.name) == nullptr) return each.name;
  return {};
}

namespace {

std::vector<kernel_call> near_kernels(const config& model, op_code code, int slice) {
  const auto count = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  // Of the slice, or of one in the middle.
  const sequence_cut cut = model.cut();
  const bool mean = slice < 0;
  const std::int64_t length = mean ? (model.context + model.slices - 1) / model.slices
                                   : count(cut.length(config::size(slice)));
  const std::int64_t seen =
      mean ? length * (model.slices + 1) / 2 : count(cut.begin(config::size(slice) + 1));
  const std::int64_t rows = model.microbatch * length;
  const std::int64_t width = model.width, share = count(model.share());
  const std::int64_t hidden = share * model.expansion, vocabulary = count(model.piece_tokens());
  const std::int64_t activation = count(model.activation_scalars() * sizeof(float));
  const auto plain = [](std::int64_t m, std::int64_t k, std::int64_t n) {
    return kernel_call{"product", {m, k, n}};
  };
  const auto by_transposed = [](std::int64_t m, std::int64_t k, std::int64_t n) {
    return kernel_call{"product by transposed", {m, k, n}};
  };
  const auto transposed = [](std::int64_t m, std::int64_t k, std::int64_t n) {
    return kernel_call{"transposed product", {m, k, n}};
  };
  const auto each = [&](const char* name, std::int64_t columns) {
    return kernel_call{name, {rows, columns}};
  };
  // A square of as many products: of the slice's tokens with all that they see.
  const auto heads_of = [&](const char* name) {
    const auto side = static_cast<std::int64_t>(
        std::lround(std::sqrt(static_cast<double>(length) * static_cast<double>(seen))));
    return kernel_call{name,
                       {side, share / (model.heads / model.shards)},
                       std::int64_t{model.microbatch} * (model.heads / model.shards)};
  };
  // What is summed over shards is kept besides.
  const auto keeping = [&](std::vector<kernel_call> made) {
    if (model.shards > 1) made.push_back({"move", {2 * activation}});
    return made;
  };
  switch (code) {
    case op_code::embed:
      return {each("embed", width)};
    case op_code::norm1:
      return {each("norm", width)};
    case op_code::qkv:
      return {plain(rows, width, 3 * share), each("bias", 3 * share)};
    case op_code::attention:
      return {heads_of("attention of a head")};
    case op_code::mix:
      return {plain(rows, share, width)};
    case op_code::middle:
      return {each("residual", width), each("norm", width)};
    case op_code::up:
      return {plain(rows, width, hidden), each("bias", hidden), each("gelu", hidden)};
    case op_code::down:
      return {plain(rows, hidden, width)};
    case op_code::output:
      return {each("residual", width)};
    // Each piece of a head goes over its logits in both; all are taken as the first, with the norm.
    case op_code::head:
      return {each("norm", width), by_transposed(rows, width, vocabulary),
              each("loss", vocabulary)};
    case op_code::mix_sum:
    case op_code::down_sum:
    case op_code::up_back_sum:
    case op_code::qkv_back_sum:
      return {{"sum", {2 * activation * (model.shards - 1) / model.shards}}};
    case op_code::receive_gradient:
      return {{"move", {2 * activation}}};
    case op_code::head_back:
      if (model.head_pieces > 1)
        return {each("loss", vocabulary), plain(rows, vocabulary, width),
                {"move", {activation}}, each("norm back", width)};
      return {plain(rows, vocabulary, width), {"move", {activation}}, each("norm back", width)};
    case op_code::down_back:
      return {by_transposed(rows, width, hidden), each("multiply", hidden)};
    case op_code::up_back:
      return {by_transposed(rows, hidden, width)};
    case op_code::middle_back:
      return keeping({each("norm back", width), by_transposed(rows, width, share)});
    case op_code::attention_back:
      return {heads_of("attention of a head back")};
    case op_code::qkv_back:
      return {by_transposed(rows, 3 * share, width)};
    case op_code::input_back:
      return keeping({each("norm back", width)});
    case op_code::head_weight:
      return {transposed(vocabulary, rows, width), each("norm weights", width)};
    case op_code::down_weight:
      return {transposed(hidden, rows, width), each("row sums", width)};
    case op_code::up_weight:
      return {transposed(width, rows, hidden), each("row sums", hidden)};
    case op_code::mix_weight:
      return {transposed(share, rows, width), each("row sums", width)};
    case op_code::qkv_weight:
      return {transposed(width, rows, 3 * share), each("row sums", 3 * share)};
    case op_code::norm1_weight:
    case op_code::norm2_weight:
      return {each("norm weights", width)};
    case op_code::embed_weight:
      break;
  }
  return {each("embed weights", width)};
}

}  // namespace

std::vector<kernel_call> kernels_of(const config& model, op_code code, int slice, bool afar) {
  std::vector<kernel_call> made = near_kernels(model, code, slice);
  if (afar)
    for (kernel_call& call : made) call.kernel = from_afar(call.kernel);
  return made;
}

}  // namespace train
