#include "named_schedule.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <system_error>
#include <type_traits>
#include <vector>

#include "errors.hpp"

namespace stretto::tool {

namespace {

//! "looped, wave or bidirectional".
template <class Kind>
std::string all_words() {
  std::string words;
  const auto& all = schedule::spellings<Kind>;
  for (std::size_t at = 0; at < all.size(); ++at)
    words += (at == 0 ? "" : at + 1 < all.size() ? ", " : " or ") + std::string(all[at].word);
  return words;
}

//! The options behind the name, each with its value.
class told_options {
 public:
  explicit told_options(const std::string& text) : text_(text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) return;
    for (std::size_t at = colon; at < text.size();) {
      const std::size_t end = std::min(text.find(',', at + 1), text.size());
      const std::string one = text.substr(at + 1, end - at - 1);
      const std::size_t equals = one.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == one.size())
        refuse("'" + one + "' is not option=value");
      if (!told_.emplace(one.substr(0, equals), one.substr(equals + 1)).second)
        refuse(one.substr(0, equals) + " is told twice");
      at = end;
    }
  }

  //! Takes the option, if it is told, and adds it to `words`.
  template <class Kind>
  void take(const std::string& option, std::optional<Kind>& into, std::string& words) {
    const auto found = told_.find(option);
    if (found == told_.end()) return;
    const std::string& value = found->second;
    if constexpr (std::is_same_v<Kind, int>) {
      const int least = option == "variant" ? 0 : 1;  // as the command line's own
      int number = -1;
      const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
      if (read.ec != std::errc{} || read.ptr != value.data() + value.size() || number < least)
        refuse(option + " is a whole number from " + std::to_string(least) + " to " +
               std::to_string(std::numeric_limits<int>::max()) + ", not '" + value + "'");
      into = number;
    } else {
      into = schedule::spelt<Kind>(value);
      if (!into) refuse(option + " is " + all_words<Kind>() + ", not '" + value + "'");
    }
    words += (words.find(':') == std::string::npos ? ":" : ",") + option + "=" +
             schedule::word_for(*into);
    told_.erase(found);
  }
  //! @param has  options that there are, as the command line spells them
  void refuse_others(const std::string& name, const std::vector<std::string>& has) const {
    if (told_.empty()) return;
    const std::string& option = told_.begin()->first;
    if (option == "objective") refuse("what is to be short is one for all: --objective");
    std::string known;
    for (const std::string& one : has)
      if (one != "--objective") known += one.substr(2) + ", ";
    refuse(name + " has no option " + option + "; it has " + known + "merge");
  }

 private:
  [[noreturn]] void refuse(const std::string& rule) const {
    throw bad_option("NAME", text_, rule);
  }

  std::string text_;
  std::map<std::string, std::string> told_;
};

}  // namespace

named_schedule read_named(const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  const std::vector<schedule_facts> all = catalogue();
  const auto facts = std::ranges::find(all, name, &schedule_facts::name);
  if (facts == all.end()) refuse_name(name);
  named_schedule made{.facts = *facts, .words = name};
  told_options told(text);
  schedule::for_each_option([&](const std::string& option, auto member, auto) {
    const bool has = std::ranges::count(facts->options, "--" + option) > 0;
    if (has && option != "objective") told.take(option, made.told.*member, made.words);
  });
  told.take("merge", made.told.merge, made.words);
  told.refuse_others(name, facts->options);
  return made;
}

}  // namespace stretto::tool
