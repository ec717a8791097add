#pragma once

#include <string_view>

#include "stretto/base/reason_text.hpp"
#include "stretto/base/text.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

//! The rule that a fault breaks; empty for bad input that breaks no rule of validity.
constexpr std::string_view rule_of(fault what) {
  switch (what) {
    case fault::incomplete:
      return "complete";
    case fault::disordered:
      return "ordered";
    case fault::deadlocked:
      return "live";
    case fault::rendezvous:
      return "rendezvous";
    case fault::over_limit:
      return "bounded";
    case fault::race:
      return "race-free";
    case fault::idle_event:
      return "spare";
    case fault::not_resident:
      return "resident";
    case fault::untimely:
      return "timely";
    case fault::miscut:
      return "cut";
    case fault::missharded:
      return "sharded";
    default:
      return "";
  }
}

//! Long enough for every verdict.
using verdict_text = fixed_text<512>;

namespace detail {

//! What the amounts of fault::misassigned say: how much there is, and what would be valid.
constexpr void put_layers(verdict_text& text, const verdict& answer) {
  std::string_view what;
  std::string_view valid;
  switch (answer.why) {
    case reason::empty_stage:
      what = "layers: ", valid = ", at least ";
      break;
    case reason::layers_do_not_fit:
      what = "layers: ", valid = ", must be ";
      break;
    case reason::counts_not_per_rank:
    case reason::counts_not_per_stage:
      what = "counts: ", valid = ", must be ";
      break;
    case reason::sizes_not_per_stage:
      what = "entries: ", valid = ", must be ";
      break;
    case reason::no_such_rank:
      what = "layer ", valid = ", at most rank ";
      break;
    case reason::layer_misplaced:
      what = "layer ", valid = ", must be on rank ";
      break;
    case reason::layer_missing:
    case reason::layer_twice:
      what = "layer ", valid = " of ";
      break;
    case reason::bad_layout:
    case reason::layout_order:
    case reason::layout_too_long:
      what = "character ", valid = " of ";
      break;
    default:
      return;
  }
  text << std::string_view(" (") << what << answer.amount << valid << answer.limit << ')';
}

}  // namespace detail

//! One sentence for people: the rule (or what is wrong), rank, step (from 0), job, why, the other
//! job, the amounts. `rule live broken on rank 1, step 0, job 1F1: it waits for a job that can
//! never run: 0F1`. "ok" when nothing is wrong.
constexpr verdict_text to_text(const verdict& answer) {
  verdict_text text;
  if (answer.ok()) return text << std::string_view("ok");
  const std::string_view rule = rule_of(answer.what);
  if (rule.empty())
    text << name(answer.what);
  else
    text << std::string_view("rule ") << rule << std::string_view(" broken");
  if (answer.rank >= 0) text << std::string_view(" on rank ") << answer.rank;
  if (answer.step >= 0) text << std::string_view(", step ") << answer.step;
  if (answer.has_job) text << std::string_view(", job ") << to_text(answer.where).view();
  if (answer.why != reason::none)
    text << std::string_view(": ") << describe(answer.why);
  else if (answer.what == fault::unsupported)
    text << std::string_view(", and the policy gives no reason");
  if (answer.why == reason::duplicate && answer.has_other)
    return text << std::string_view(", the first time at step ") << answer.amount;
  if (answer.has_other) text << std::string_view(": ") << to_text(answer.other).view();
  if (answer.what == fault::misassigned)
    detail::put_layers(text, answer);
  else if (answer.what == fault::unsound_program && answer.amount >= 0)
    text << std::string_view(" (buffer ") << answer.amount << ')';
  else if (answer.what == fault::unsound_program)
    return text;
  else if (answer.why == reason::below_base)
    text << std::string_view(" (left in the end: ") << answer.amount
         << std::string_view(", at first: ") << answer.limit << ')';
  else if (answer.amount != 0 || answer.limit != 0)
    text << std::string_view(" (") << answer.amount << std::string_view(", at most ")
         << answer.limit << ')';
  return text;
}

}  // namespace stretto
