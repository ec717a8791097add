#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "stretto/base/viewed.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/stream_type.hpp"
#include "stretto/model/transformer.hpp"

namespace stretto {

//! Which of the three that meet in a product with weights it makes of the other two.
enum class made_by_product : std::uint8_t {
  columns,  //!< what is on the side of the matrix's columns
  inner,    //!< what is on its other side
  matrix,   //!< the weights' gradients
};

//! Adds ops of one rank's share of a transformer to its programs: what they touch, how they may be
//! cut, and what they take by a machine's roofline or as measured there. Rows are the tokens that
//! one device has of a job: where several share a sequence, its own. Where ranks share the
//! layers, a row-split product is followed by the sum of its parts, forwards, and a column-split
//! one backwards, on the stream for that; nothing is copied besides. Where those are scattered and
//! gathered (sequence parallelism), a piece of rows is the same part of what each rank holds.
class transformer_ops {
 public:
  //! @param on  what ops take there; a machine without a name: they have no times
  constexpr transformer_ops(const transformer& model, program_chain& out, const machine& on)
      : model_(model), out_(out), on_(on), t_(model.tensor_parallel), rows_(model.tokens()) {}

  constexpr const transformer& model() const { return model_; }
  constexpr program_chain& out() { return out_; }
  constexpr std::int64_t rows() const { return rows_; }
  //! Of these what a rank has where sequence parallelism splits them.
  constexpr std::int64_t own_rows() const { return rows_ / (model_.sequence_parallel ? t_ : 1); }
  constexpr int shards() const { return model_.tensor_parallel; }
  constexpr bool dropout() const { return model_.layers == architecture::gpt; }

  //! Bytes of all rows of the model's width.
  constexpr std::int64_t full_row() const {
    return rows_ * model_.hidden * model_.bytes.activation;
  }
  //! Of those rows that a rank holds: all, unless sequence parallelism splits them.
  constexpr std::int64_t row() const { return own(model_.hidden); }
  //! Of a dropout's mask over the same; see dropout().
  constexpr std::int64_t row_mask() const { return own_rows() * model_.hidden; }
  //! Of the rank's share of all rows of some width.
  constexpr std::int64_t share(std::int64_t width) const {
    return rows_ * width * model_.bytes.activation / t_;
  }
  //! Of the rank's own rows of some width, which no other rank shares.
  constexpr std::int64_t own(std::int64_t width) const {
    return own_rows() * width * model_.bytes.activation;
  }

  //! The same where products with weights alone read it: see precision::operand.
  constexpr std::int64_t operand_row() const { return operand_own(model_.hidden); }
  constexpr std::int64_t operand_share(std::int64_t width) const {
    return as_operand(share(width));
  }
  constexpr std::int64_t operand_own(std::int64_t width) const { return as_operand(own(width)); }
  //! Products with weights read other numbers than activations are.
  constexpr bool casts() const { return model_.bytes.operands() != model_.bytes.activation; }

  //! As many bytes for each row, whether the rank holds all rows or, with sequence parallelism, its
  //! part of them: a piece of an op that is cut by rows touches its own.
  constexpr std::int32_t buffer(std::string_view name, std::int64_t bytes) {
    return out_.buffer(name, bytes, own_rows());
  }
  //! By heads, each of which needs all rows: what is cut by rows touches all of it.
  constexpr std::int32_t buffer_by_heads(std::string_view name, std::int64_t bytes) {
    return out_.buffer(name, bytes);
  }

  //! What a product takes with a matrix of the model's width by so many columns (or rows), of which
  //! each rank has a share.
  constexpr op_work linear(std::int64_t columns, made_by_product made) const {
    return matrix(model_.hidden, columns, made);
  }
  //! The same of a matrix of another width.
  constexpr op_work matrix(std::int64_t inner, std::int64_t columns, made_by_product made) const {
    return product_of(rows_, inner, columns / t_, made);
  }
  //! Of one that no other rank shares, with the rank's own rows.
  constexpr op_work own_matrix(std::int64_t inner, std::int64_t columns,
                               made_by_product made) const {
    return product_of(own_rows(), inner, columns, made);
  }
  //! With as many matrices as rows are dealt among.
  constexpr op_work product_of(std::int64_t rows, std::int64_t inner, std::int64_t columns,
                               made_by_product made, std::int64_t matrices = 1) const {
    const precision& bytes = model_.bytes;
    const auto side = [&](made_by_product one) {
      return one == made ? bytes.activation : bytes.operands();
    };
    const std::int64_t weight = made == made_by_product::matrix ? gradient_bytes()
                                : casts()                       ? bytes.operands()
                                                                : bytes.weight;
    return {2 * rows * inner * columns,
            rows * inner * side(made_by_product::inner) +
                rows * columns * side(made_by_product::columns) +
                matrices * inner * columns * weight,
            0,
            {(rows + matrices - 1) / matrices, inner, columns},
            matrices,
            false,
            bytes.operands()};
  }
  //! What a weight's gradient reads and writes to be added to what there is of it.
  constexpr std::int64_t gradient_bytes() const { return 2 * model_.bytes.gradient; }
  constexpr static op_work moved(std::int64_t bytes) { return {0, bytes}; }

  //! An op that takes rows one by one.
  constexpr void add(std::string_view name, std::initializer_list<op_use> touched,
                     const op_work& work, pieces_of cut = pieces_of::rows) {
    out_.add(name, touched, {.time = time(work), .cut = cut});
  }
  constexpr void add(std::string_view name, std::span<const op_use> touched, const op_work& work,
                     pieces_of cut) {
    out_.add(name, touched, {.time = time(work), .cut = cut});
  }
  //! Gradients of weights: each needs all rows.
  constexpr void weights(std::string_view name, std::initializer_list<op_use> touched,
                         const op_work& work) {
    add(name, touched, work, pieces_of::result);
  }
  constexpr void collective(std::string_view name, std::initializer_list<op_use> touched,
                            std::int64_t message, pieces_of cut) {
    op_form form = sent({message, model_.far_of_rings(message, t_, 1)}, cut);
    form.stream = static_cast<std::uint8_t>(stream_type::tensor_parallel);
    form.collective = true;
    out_.add(name, touched, form);
  }
  //! What goes to other replicas, or those who share the sequence, and comes from them.
  constexpr void message(std::string_view name, std::initializer_list<op_use> touched,
                         const network_message& bytes, pieces_of cut) {
    op_form form = sent(bytes, cut);
    form.stream = static_cast<std::uint8_t>(stream_type::data_parallel);
    out_.add(name, touched, form);
  }
  //! A product of which each rank has only a summand, and the sum.
  //! @param width  of the result
  constexpr void product(std::string_view name, std::string_view sum,
                         std::initializer_list<op_use> touched, std::int32_t result,
                         const op_work& work, std::int64_t width) {
    const std::int32_t made = summand(result, width);
    std::vector<op_use> all(touched);
    all.push_back(writes(made));
    out_.add(name, viewed(all), {.time = time(work), .cut = pieces_of::rows});
    add_up(sum, made, result, width);
  }
  //! The same of the model's width.
  constexpr void product(std::string_view name, std::string_view sum,
                         std::initializer_list<op_use> touched, std::int32_t result,
                         const op_work& work) {
    product(name, sum, touched, result, work, model_.hidden);
  }
  //! Where each rank makes a summand of what `add_up` brings to `result`.
  constexpr std::int32_t summand(std::int32_t result, std::int64_t width) {
    return splits_rows() ? buffer("summand", rows_ * width * model_.bytes.activation) : result;
  }
  //! Each rank gets its part of the rows of the sum, where they are split, else all.
  constexpr void add_up(std::string_view name, std::int32_t summands, std::int32_t result,
                        std::int64_t width) {
    if (splits_rows())
      collective(name, {reads(summands), writes(result)},
                 ring(width, model_.bytes.activation), pieces_of::rows);
    else if (t_ > 1)
      collective(name, {reads(summands), writes(summands)},
                 2 * ring(width, model_.bytes.activation), pieces_of::rows);
  }
  //! All rows of a buffer that sequence parallelism splits, for the time of a product with weights
  //! that reads it.
  constexpr std::int32_t gathered(std::int32_t part) {
    return gathered("gather", part, model_.hidden);
  }
  constexpr std::int32_t gathered(std::string_view name, std::int32_t part, std::int64_t width) {
    return gathered(name, part, width, model_.bytes.operands());
  }
  //! @param each  bytes of a number
  constexpr std::int32_t gathered(std::string_view name, std::int32_t part, std::int64_t width,
                                  std::int64_t each) {
    if (!splits_rows()) return part;
    const std::int32_t all = buffer("gathered", rows_ * width * each);
    collective(name, {reads(part), writes(all)}, ring(width, each), pieces_of::rows);
    return all;
  }
  //! What products with weights read of activations: these, or a copy.
  constexpr std::int32_t operand(std::int32_t of, std::int64_t bytes,
                                 std::string_view name = "cast") {
    if (!casts()) return of;
    const std::int32_t made = buffer("operand", as_operand(bytes));
    add(name, {reads(of), writes(made)}, moved(bytes + as_operand(bytes)));
    return made;
  }

  //! @param bytes  of the result
  constexpr void norm(std::int32_t from, std::int32_t result, std::int64_t bytes) {
    add("norm", {reads(from), writes(result)}, moved(row() + bytes));
  }
  //! What a block has made, dropped in part where there is a mask, and what it has made it of.
  //! @param mask  -1: none
  constexpr void residual(std::int32_t made, std::int32_t from, std::int32_t mask,
                          std::int32_t result) {
    if (mask < 0)
      add("residual", {reads(made), reads(from), writes(result)}, moved(3 * row()));
    else
      add("residual", {reads(made), reads(from), writes(mask), writes(result)},
          moved(3 * row() + row_mask()));
  }
  //! @return the gradient of what the block has made, by this name; without a mask its sum's
  constexpr std::int32_t residual_back(std::int32_t gradient, std::int32_t mask,
                                       std::string_view name) {
    if (mask < 0) return gradient;
    const std::int32_t made = buffer(name, row());
    add("residual back", {reads(gradient), reads(mask), writes(made)},
        moved(2 * row() + row_mask()));
    return made;
  }
  //! Adds what came through the norm to the gradient that came past the block.
  //! @param still_read  the latter, as it is, by gradients of weights to come
  //! @return the sum, elsewhere if so, else in place
  constexpr std::int32_t norm_back(std::int32_t from, std::int32_t d_norm, std::int32_t gradient,
                                   bool still_read) {
    const std::int32_t sum = still_read ? buffer("input gradient", row()) : gradient;
    add("norm back", {reads(from), reads(d_norm), reads(gradient), writes(sum)}, moved(4 * row()));
    return sum;
  }

 private:
  //! What goes partly over the network goes, as a whole, over that.
  constexpr op_form sent(const network_message& what, pieces_of cut) const {
    return {.time = time({.message = what.bytes, .far = what.far}),
            .cut = cut,
            .holds = static_cast<std::int16_t>(on_.collective),
            .link = static_cast<std::uint8_t>(what.far > 0 && on_.network > 0 ? 2 : 1)};
  }
  constexpr std::int64_t time(op_work work) const {
    if (model_.bytes.activation == 4) work.operand = 4;
    return on_.name.empty() ? 0 : on_.time(work);
  }
  constexpr std::int64_t as_operand(std::int64_t activations) const {
    return activations / model_.bytes.activation * model_.bytes.operands();
  }
  constexpr bool splits_rows() const { return model_.sequence_parallel && t_ > 1; }
  //! What leaves a rank for it to have its part of a sum, or all parts of a whole, round a ring.
  constexpr std::int64_t ring(std::int64_t width, std::int64_t each) const {
    return rows_ * width * each * (t_ - 1) / t_;
  }

  transformer model_;
  program_chain& out_;
  machine on_;
  std::int64_t t_ = 1;
  std::int64_t rows_ = 0;
};

}  // namespace stretto
