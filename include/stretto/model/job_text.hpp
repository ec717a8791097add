#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "stretto/base/fixed_vector.hpp"
#include "stretto/base/text.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

//! The letters of a kind in the text form: those of torch.distributed.pipelining's actions for what
//! it has (F, B, I, W, messages, UNSHARD, RESHARD, REDUCE_GRAD), our own for the rest.
constexpr std::string_view letters(job_kind kind) {
  constexpr std::string_view names[job_kind_count] = {
      "F",      "B",           "I",          "W",          "R",         "OFFLOAD",
      "RELOAD", "REDUCE_GRAD", "UNSHARD",    "RESHARD",    "SEND_F",    "RECV_F",
      "SEND_B", "RECV_B",      "ALL_REDUCE", "ALL_GATHER", "OPTIMIZER", "END_STEP"};
  const auto number = static_cast<unsigned>(kind);
  return number < job_kind_count ? names[number] : "?";
}

//! What a kind does, in words for people.
constexpr std::string_view words(job_kind kind) {
  constexpr std::string_view names[job_kind_count] = {"forward",
                                                      "backward",
                                                      "backward for the input",
                                                      "backward for the weights",
                                                      "recompute",
                                                      "copy to the host",
                                                      "copy back",
                                                      "gradient reduction",
                                                      "gather of weights",
                                                      "drop of weights",
                                                      "send of activations",
                                                      "receive of activations",
                                                      "send of a gradient",
                                                      "receive of a gradient",
                                                      "all-reduce",
                                                      "all-gather",
                                                      "optimizer",
                                                      "end of the step"};
  const auto number = static_cast<unsigned>(kind);
  return number < job_kind_count ? names[number] : "?";
}

//! Whether PyTorch's schedule grammar has a form for the kind.
constexpr bool has_pytorch_form(job_kind kind) {
  return kind <= job_kind::backward_weight || is_message(kind) || is_gather(kind) ||
         kind == job_kind::reduce_grad;
}
//! Whether PyTorch's schedule grammar has a form for the job: a kind that it knows, no slice.
constexpr bool has_pytorch_form(const job& work) {
  return has_pytorch_form(work.kind) && work.slice == 0;
}

//! Whether the text form always carries a micro-batch. The other kinds belong to a stage or a rank
//! and carry one only when it is not 0.
constexpr bool names_microbatch(job_kind kind) {
  return is_of_cell(kind) || is_collective(kind);
}

//! Long enough for every job; twice this and a few letters for a pair.
using job_text = fixed_text<48>;
using pair_text = fixed_text<112>;

//! STAGE TYPE [MICROBATCH], as PyTorch prints it: 2F0 is the forward of micro-batch 0 on stage 2,
//! 0REDUCE_GRAD a reduction of stage 0. Slices, which PyTorch has not, follow a dot unless 0:
//! 2F0.1. `paired` is not part of one job's text; see the form for two jobs.
constexpr job_text to_text(const job& work) {
  job_text text;
  text << static_cast<std::int64_t>(work.stage) << letters(work.kind);
  if (names_microbatch(work.kind) || work.microbatch != 0 || work.slice != 0)
    text << static_cast<std::int64_t>(work.microbatch);
  if (work.slice != 0) text << '.' << static_cast<std::int64_t>(work.slice);
  return text;
}

//! Two jobs that run as one node: (0F3;3B1)OVERLAP_F_B.
constexpr pair_text to_text(const job& first, const job& second) {
  pair_text text;
  text << '(' << to_text(first).view() << ';' << to_text(second).view() << ")OVERLAP_F_B";
  return text;
}

//! One job read from text; `job` means something when `answer` is ok.
struct parsed_job {
  stretto::job job{};
  verdict answer{};
};

//! One action read from text: a job, or the two of a pair (the first with `paired` set).
struct parsed_action {
  fixed_vector<job, 2> jobs{};
  verdict answer{};
};

namespace detail {

constexpr bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}
constexpr bool is_kind_letter(char letter) {
  return (letter >= 'A' && letter <= 'Z') || letter == '_';
}

//! Takes digits off the front of `text`.
//! @return none, bad_token when there is no digit, out_of_range when the number exceeds `most`.
constexpr reason take_number(std::string_view& text, std::int64_t most, std::int64_t& number) {
  if (text.empty() || !is_digit(text.front())) return reason::bad_token;
  number = 0;
  while (!text.empty() && is_digit(text.front())) {
    number = number * 10 + (text.front() - '0');
    if (number > most) return reason::out_of_range;
    text.remove_prefix(1);
  }
  return reason::none;
}

constexpr reason take_kind(std::string_view& text, job_kind& kind) {
  std::size_t length = 0;
  while (length < text.size() && is_kind_letter(text[length])) ++length;
  for (int at = 0; at < job_kind_count; ++at) {
    if (letters(static_cast<job_kind>(at)) != text.substr(0, length)) continue;
    kind = static_cast<job_kind>(at);
    text.remove_prefix(length);
    return reason::none;
  }
  return reason::bad_token;
}

//! Takes one job off the front of `text`, which may go on.
constexpr reason take_job(std::string_view& text, job& work) {
  std::int64_t stage = 0;
  std::int64_t microbatch = 0;
  std::int64_t slice = 0;
  if (const reason why = take_number(text, std::numeric_limits<std::int32_t>::max(), stage);
      why != reason::none)
    return why;
  if (const reason why = take_kind(text, work.kind); why != reason::none) return why;
  const bool numbered = !text.empty() && is_digit(text.front());
  if (numbered || names_microbatch(work.kind)) {
    if (const reason why = take_number(text, std::numeric_limits<std::int32_t>::max(), microbatch);
        why != reason::none)
      return why;
    if (!text.empty() && text.front() == '.') {
      text.remove_prefix(1);
      if (const reason why = take_number(text, std::numeric_limits<std::int16_t>::max(), slice);
          why != reason::none)
        return why;
    }
  }
  work.stage = static_cast<std::int32_t>(stage);
  work.microbatch = static_cast<std::int32_t>(microbatch);
  work.slice = static_cast<std::int16_t>(slice);
  return reason::none;
}

}  // namespace detail

//! Reads what to_text(job) prints. Strict, unlike PyTorch's reader: the whole text must match,
//! without spaces around it, and numbers must fit their fields.
//! @return fault::syntax with bad_token, trailing_text or out_of_range when it is no job.
constexpr parsed_job parse_job(std::string_view text) {
  parsed_job read;
  reason why = detail::take_job(text, read.job);
  if (why == reason::none && !text.empty()) why = reason::trailing_text;
  if (why != reason::none) read = {{}, refuse(fault::syntax, why)};
  return read;
}

//! Reads a job or a pair, as both forms of to_text print them. A pair is one forward and one
//! backward (B or I), in either order. Strict as parse_job.
constexpr parsed_action parse_action(std::string_view text) {
  parsed_action read;
  if (text.empty() || text.front() != '(') {
    const parsed_job single = parse_job(text);
    read.answer = single.answer;
    if (read.answer.ok()) read.jobs.push_back(single.job);
    return read;
  }
  constexpr std::string_view closing = ")OVERLAP_F_B";
  job first{};
  job second{};
  text.remove_prefix(1);
  reason why = detail::take_job(text, first);
  if (why == reason::none && (text.empty() || text.front() != ';')) why = reason::bad_token;
  if (why == reason::none) {
    text.remove_prefix(1);
    why = detail::take_job(text, second);
  }
  if (why == reason::none) {
    const bool paired = first.kind == job_kind::forward
                            ? is_input_gradient(second.kind)
                            : is_input_gradient(first.kind) && second.kind == job_kind::forward;
    if (text.substr(0, closing.size()) != closing || !paired)
      why = reason::bad_token;
    else if (text.size() > closing.size())
      why = reason::trailing_text;
  }
  if (why != reason::none) {
    read.answer = refuse(fault::syntax, why);
    return read;
  }
  first.paired = true;
  read.jobs.push_back(first);
  read.jobs.push_back(second);
  return read;
}

}  // namespace stretto
