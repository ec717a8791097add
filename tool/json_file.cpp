#include "json_file.hpp"

#include <cstddef>
#include <set>
#include <vector>

#include "files.hpp"

namespace stretto::tool {

namespace {

using nlohmann::json;

//! Of a key that stands twice in an object the last would win without a word. The parser's own
//! callbacks would tell of keys, too, in a time that grows with the square of a list's length.
class doubled_key : public json::json_sax_t {
 public:
  //! @param text  which is JSON
  explicit doubled_key(const std::string& text) { json::sax_parse(text, this); }
  //! As JSON; empty: there is none.
  const std::string& found() const { return found_; }

  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) found_ = json(name).dump();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string found_;
};

}  // namespace

json json_file::parse() const {
  const std::string text = read_file(option, path);
  if (text.empty()) fail("the file is empty");
  json all;
  try {
    all = json::parse(text);
  } catch (const json::exception& wrong) {
    const std::string what = wrong.what();
    const auto name = what.find("] ");  // the exception's, for programmers
    fail("not JSON: " + (name == std::string::npos ? what : what.substr(name + 2)));
  }
  const doubled_key twice(text);
  if (!twice.found().empty()) fail("the key " + twice.found() + " stands twice in one object");
  return all;
}

std::int64_t json_file::integer(const json& value, const std::string& place, std::int64_t least,
                                std::int64_t greatest) const {
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() &&
                      value.get<std::uint64_t>() > static_cast<std::uint64_t>(greatest));
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > greatest)
    fail(place + " is " + in_words(value) + ", must be " +
         (least == greatest
              ? std::to_string(least)
              : "an integer from " + std::to_string(least) + " to " + std::to_string(greatest)));
  return value.get<std::int64_t>();
}

}  // namespace stretto::tool
