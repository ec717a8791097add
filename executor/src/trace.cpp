#include "stretto/executor/trace.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "stretto/model/plan_names.hpp"
#include "trace_index.hpp"

namespace stretto::executor {
namespace {

//! The text as a JSON string. Bytes of UTF-8 pass; what is no valid UTF-8 would spoil the file, so
//! bytes above ASCII in stream names, which are at most 24, are replaced.
std::string in_quotes(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\')
      (result += '\\') += letter;
    else if (code < 0x20 || code == 0x7f)
      ((result += "\\u00") += digits[code >> 4]) += digits[code & 15];
    else
      result += code < 0x80 ? letter : '?';
  }
  return result += '"';
}

//! Nanoseconds as microseconds with all their digits; no locale, no rounding.
std::string microseconds(std::int64_t nanoseconds) {
  const std::string rest = std::to_string(nanoseconds % 1000);
  return std::to_string(nanoseconds / 1000) + '.' + std::string(3 - rest.size(), '0') + rest;
}

//! Metadata: the name of a process or thread, or its place among the others.
std::string metadata(std::string_view what, int rank, int stream, const std::string& argument) {
  return "{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(rank) +
         ",\"tid\":" + std::to_string(stream) + ",\"args\":{" + argument + "}}";
}

std::string_view category(const instruction& each) {
  switch (each.act) {
    case action::run:
      return "compute";
    case action::all_reduce:
    case action::all_gather:
    case action::reduce_scatter:
    case action::share_sum:
      return "collective";
    case action::end_step:
      return "end";
    default:
      return name(each.act);
  }
}

std::string slice(const plan_view& plan, const trace_record& each, std::int64_t origin) {
  const instruction& what = plan.instructions[static_cast<std::size_t>(each.instruction)];
  std::string text =
      "{\"ph\":\"X\",\"name\":" + in_quotes(to_text(plan, each.instruction).view()) + ",\"cat\":\"";
  text += category(what);
  text += "\",\"pid\":" + std::to_string(each.rank) + ",\"tid\":" + std::to_string(what.stream) +
          ",\"ts\":" + microseconds(each.start - origin) +
          ",\"dur\":" + microseconds(std::max<std::int64_t>(0, each.end - each.start)) +
          ",\"args\":{\"step\":" + std::to_string(each.step) +
          ",\"instruction\":" + std::to_string(each.instruction) +
          ",\"stage\":" + std::to_string(what.what.stage) +
          ",\"microbatch\":" + std::to_string(what.what.microbatch);
  if (what.act == action::send || what.act == action::receive)
    text += ",\"peer\":" + std::to_string(what.peer);
  return text + "}}";
}

}  // namespace

void write_chrome_trace(std::ostream& out, std::span<const plan_view> plans,
                        std::span<const trace_record> records) {
  const trace_index found(plans, records);
  std::int64_t origin = 0;
  for (const trace_record& each : records)
    origin = &each == records.data() ? each.start : std::min(origin, each.start);
  std::string separator = "\n";
  const auto put = [&](const std::string& event) {
    out << separator << event;
    separator = ",\n";
  };
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  for (const plan_view& plan : plans) {
    const std::string rank = std::to_string(plan.rank);
    put(metadata("process_name", plan.rank, 0, "\"name\":\"rank " + rank + '"'));
    put(metadata("process_sort_index", plan.rank, 0, "\"sort_index\":" + rank));
    for (std::size_t stream = 0; stream < plan.streams.size(); ++stream) {
      const int number = static_cast<int>(stream);
      put(metadata("thread_name", plan.rank, number,
                   "\"name\":" + in_quotes(name(plan.streams[stream]))));
      put(metadata("thread_sort_index", plan.rank, number,
                   "\"sort_index\":" + std::to_string(number)));
    }
  }
  for (const auto& [step, ranks] : found.steps())
    for (std::size_t plan = 0; plan < plans.size(); ++plan)
      for (const trace_record* each : ranks[plan])
        if (each != nullptr) put(slice(plans[plan], *each, origin));
  out << "\n]}\n";
}

}  // namespace stretto::executor
