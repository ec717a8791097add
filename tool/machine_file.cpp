#include "machine_file.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "json_file.hpp"
#include "numbers.hpp"

namespace stretto::tool {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::int64_t most_points = 100'000;

struct rate {
  const char* field;
  std::int64_t least;
};
constexpr rate rates_of_file[] = {{"flops", 1},     {"memory", 1},  {"link", 1},
                                  {"launch", 0},    {"latency", 0}, {"multiprocessors", 0},
                                  {"collective", 0}};

//! The rates in the order of rates_of_file.
template <class Do>
void for_each_rate(machine& of, Do&& with) {
  std::int64_t held[] = {of.multiprocessors, of.collective};
  std::int64_t* const places[] = {&of.flops,   &of.memory, &of.link, &of.launch,
                                  &of.latency, &held[0],   &held[1]};
  for (std::size_t at = 0; at < std::size(places); ++at) with(rates_of_file[at], *places[at]);
  of.multiprocessors = static_cast<std::int32_t>(held[0]);
  of.collective = static_cast<std::int32_t>(held[1]);
}

//! Those that a file may leave out.
template <class Do>
void for_each_further_rate(machine& of, Do&& with) {
  with({"single", 1}, of.single);
  with({"to_host", 1}, of.to_host);
  with({"fp8", 1}, of.fp8);
}

//! C++'s keywords, and the namespaces that the header speaks of.
constexpr std::string_view taken =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq "
    "nullptr operator or or_eq private protected public register reinterpret_cast requires return "
    "short signed sizeof static static_assert static_cast struct switch template this thread_local "
    "throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t "
    "while "
    "xor xor_eq std stretto ";
//! What it names itself, and macros that it may meet.
constexpr std::string_view named = " on kernels NULL EOF errno assert unix linux ";

class machine_reader {
 public:
  explicit machine_reader(const json_file& from) : from_(from) {}

  measured_machine read() const {
    const json all = from_.parse();
    if (!all.is_object()) from_.fail("must be an object");
    measured_machine made;
    made.name = text(member(all, "machine", ""), "\"machine\"");
    if (!is_identifier(made.name))
      from_.fail("\"machine\" is \"" + made.name + "\", " + identifier_rule);
    std::set<std::string> known{"machine", "kernels"};
    const auto read_rate = [&](const rate& one, std::int64_t& value) {
      known.insert(one.field);
      value =
          from_.integer(member(all, one.field, ""), quoted(one.field), one.least, 1'000'000'000);
    };
    for_each_rate(made.rates, read_rate);
    for_each_further_rate(made.rates, [&](const rate& one, std::int64_t& value) {
      if (all.contains(one.field)) read_rate(one, value);
    });
    refuse_others(all, known, "");
    const machine& on = made.rates;
    constexpr std::int32_t most_held = std::numeric_limits<std::int16_t>::max();
    if (on.collective > most_held)
      from_.fail("\"collective\" is " + std::to_string(on.collective) + ", at most " +
                 std::to_string(most_held));
    if (on.multiprocessors > 0 && on.collective >= on.multiprocessors)
      from_.fail("\"collective\" is " + std::to_string(on.collective) +
                 ", which leaves computation none of \"multiprocessors\", " +
                 std::to_string(on.multiprocessors));
    if (!all.contains("kernels")) return made;
    const json& kernels = array(all["kernels"], "\"kernels\"");
    std::set<std::string> names;
    for (std::size_t at = 0; at < kernels.size(); ++at) {
      made.kernels.push_back(kernel(kernels[at], "kernels[" + std::to_string(at) + "]"));
      if (!names.insert(made.kernels.back().name).second)
        from_.fail("kernels[" + std::to_string(at) + "] is a second \"" + made.kernels.back().name +
                   "\"");
    }
    return made;
  }

 private:
  static std::string quoted(const std::string& text) { return "\"" + text + "\""; }
  const json& member(const json& of, const char* name, const std::string& place) const {
    const auto found = of.find(name);
    if (found == of.end())
      from_.fail((place.empty() ? "" : place + ": ") + quoted(name) + " is missing");
    return *found;
  }
  void refuse_others(const json& of, const std::set<std::string>& known,
                     const std::string& place) const {
    for (const auto& [name, value] : of.items())
      if (known.count(name) == 0)
        from_.fail((place.empty() ? "" : place + ": ") + "there is no field " + quoted(name));
  }
  std::string text(const json& value, const std::string& place) const {
    if (!value.is_string()) from_.fail(place + " is " + in_words(value) + ", must be a string");
    return value.get<std::string>();
  }
  const json& array(const json& value, const std::string& place) const {
    if (!value.is_array() || value.empty())
      from_.fail(place + " must be an array that is not empty");
    return value;
  }
  std::vector<std::int64_t> numbers(const json& value, const std::string& place) const {
    std::vector<std::int64_t> made;
    for (const json& one : array(value, place))
      made.push_back(
          from_.integer(one, place + "[" + std::to_string(made.size()) + "]", 1, most_cost));
    return made;
  }

  //! Of what rooflines ask for: rows, inner size and columns; bytes. 0: of others any number.
  static std::size_t axes_of(const std::string& name) {
    return name == "product" ? 3 : name == "move" || name == "sum" ? 1 : 0;
  }

  measured_machine::kernel kernel(const json& value, const std::string& place) const {
    if (!value.is_object()) from_.fail(place + " must be an object");
    refuse_others(value, {"name", "axes", "times"}, place);
    measured_machine::kernel made;
    made.name = text(member(value, "name", place), place + ".name");
    if (made.name.empty() || made.name.find_first_of("\"\\\n") != std::string::npos)
      from_.fail(place + ".name must be a word that needs no escapes");
    const json& axes = array(member(value, "axes", place), place + ".axes");
    if (axes.size() > most_axes)
      from_.fail(place + ".axes has " + std::to_string(axes.size()) + " axes, at most " +
                 std::to_string(most_axes));
    if (const std::size_t wanted = axes_of(made.name); wanted > 0 && axes.size() != wanted)
      from_.fail(place + ".axes has " + std::to_string(axes.size()) + " axes, and \"" + made.name +
                 "\" " + std::to_string(wanted));
    std::int64_t points = 1;
    for (std::size_t at = 0; at < axes.size(); ++at) {
      const std::string where = place + ".axes[" + std::to_string(at) + "]";
      made.axes.push_back(numbers(axes[at], where));
      const auto& axis = made.axes.back();
      for (std::size_t size = 1; size < axis.size(); ++size)
        if (axis[size] <= axis[size - 1])
          from_.fail(where + "[" + std::to_string(size) + "] is " + std::to_string(axis[size]) +
                     ", must be larger than the size before it");
      points *= static_cast<std::int64_t>(axis.size());
      if (points > most_points)
        from_.fail(place + " has more than " + std::to_string(most_points) + " points");
    }
    made.times = numbers(member(value, "times", place), place + ".times");
    if (static_cast<std::int64_t>(made.times.size()) != points)
      from_.fail(place + ".times has " + std::to_string(made.times.size()) + " times for " +
                 std::to_string(points) + " points");
    std::size_t stride = 1;
    for (std::size_t axis = made.axes.size(); axis-- > 0;) {
      for (std::size_t point = 0; point < made.times.size(); ++point)
        if (point / stride % made.axes[axis].size() > 0 &&
            made.times[point] < made.times[point - stride])
          from_.fail(place + ".times[" + std::to_string(point) + "] is " +
                     std::to_string(made.times[point]) +
                     ", less than that of a smaller size, times[" + std::to_string(point - stride) +
                     "]");
      stride *= made.axes[axis].size();
    }
    return made;
  }

  const json_file& from_;
};

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string text, line = "      ";
  for (const std::int64_t one : numbers) {
    const std::string word = std::to_string(one) + ", ";
    if (line.size() + word.size() > 100) {
      text += line.substr(0, line.size() - 1) + "\n";
      line = "      ";
    }
    line += word;
  }
  return text + line.substr(0, line.size() - 2);
}

}  // namespace

bool is_identifier(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         taken.find(" " + text + " ") == std::string_view::npos &&
         named.find(" " + text + " ") == std::string_view::npos && !text.starts_with("kernel_") &&
         !text.ends_with("_t") && text.find("__") == std::string::npos &&
         std::ranges::all_of(
             text, [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; });
}

measured_machine measured_machine::read(const std::string& option, const std::string& path) {
  const json_file from{option, path};
  return machine_reader(from).read();
}

std::string measured_machine::json() const {
  ordered_json all{{"machine", name}};
  machine values = rates;
  for_each_rate(values, [&](const rate& one, std::int64_t& value) { all[one.field] = value; });
  for_each_further_rate(values, [&](const rate& one, std::int64_t& value) {
    if (value > 0) all[one.field] = value;
  });
  for (const kernel& one : kernels)
    all["kernels"].push_back({{"name", one.name}, {"axes", one.axes}, {"times", one.times}});
  // A kernel a line.
  std::string text = "{\n";
  for (const auto& [field, value] : all.items()) {
    if (field == "kernels") continue;
    text += " \"" + field + "\": " + value.dump() + ",\n";
  }
  if (kernels.empty()) return text.substr(0, text.rfind(',')) + "\n}\n";
  text += " \"kernels\": [\n";
  for (const ordered_json& one : all["kernels"])
    text += "  " + one.dump() + (&one == &all["kernels"].back() ? "\n" : ",\n");
  return text + " ]\n}\n";
}

std::string measured_machine::header(const std::string& command) const {
  std::string text =
      "#pragma once\n\n// clang-format off\n// Written by\n//   " + command +
      "\n// A measured machine: " + name +
      "::on, for whoever takes a stretto::machine.\n\n#include <cstdint>\n\n#include "
      "\"stretto/model/machine.hpp\"\n\nstruct " +
      name + " {\n";
  std::string entries;
  for (std::size_t at = 0; at < kernels.size(); ++at) {
    const std::string prefix = "kernel_" + std::to_string(at);
    text += "  // " + kernels[at].name + "\n";
    std::string axes;
    const auto add = [&](const std::string& array, const std::vector<std::int64_t>& numbers) {
      text += "  static constexpr std::int64_t " + array + "[] = {\n" + list_of(numbers) + "};\n";
    };
    for (std::size_t axis = 0; axis < most_axes; ++axis) {
      const bool there = axis < kernels[at].axes.size();
      const std::string array = prefix + "_axis_" + std::to_string(axis);
      if (there) add(array, kernels[at].axes[axis]);
      axes += std::string(axis == 0 ? "" : ", ") + (there ? array : "{}");
    }
    add(prefix + "_times", kernels[at].times);
    entries += "      {\"" + kernels[at].name + "\", {" + axes + "}, " + prefix + "_times},\n";
  }
  if (!kernels.empty())
    text += "  static constexpr stretto::measured_kernel kernels[] = {\n" + entries + "  };\n";
  text += "  static constexpr stretto::machine on{\"" + name + "\"";
  machine values = rates;
  for_each_rate(values,
                [&](const rate&, std::int64_t& value) { text += ", " + std::to_string(value); });
  text += kernels.empty() ? ", {}" : ", kernels";
  bool further = false;
  for_each_further_rate(values, [&](const rate&, std::int64_t& value) { further |= value > 0; });
  if (further) {
    text += ", 0";  // the rate of a network, which no file has
    for_each_further_rate(
        values, [&](const rate&, std::int64_t& value) { text += ", " + std::to_string(value); });
  }
  return text + "};\n};\n";
}

const machine& measured_machine::view() {
  views_.clear();
  for (const kernel& one : kernels) {
    measured_kernel& made = views_.emplace_back();
    made.name = one.name;
    for (std::size_t axis = 0; axis < one.axes.size(); ++axis) made.axes[axis] = one.axes[axis];
    made.times = one.times;
  }
  view_ = rates;
  view_.name = name;
  view_.kernels = views_;
  return view_;
}

}  // namespace stretto::tool
