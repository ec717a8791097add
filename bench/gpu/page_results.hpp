#pragma once

// What bench/gpu/run leaves in a folder, read and held against one another.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stretto::bench {

using json_value = nlohmann::ordered_json;

//! What is wrong with results names the file, and where in it.
struct results_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

//! An object of a file, whose values are asked for by type.
class fields {
 public:
  fields(const json_value& of, std::string where) : of_(&of), where_(std::move(where)) {
    if (!of.is_object()) throw results_error(where_ + " is no object");
  }
  bool has(const std::string& key) const { return of_->contains(key); }
  std::string text(const std::string& key) const {
    return get(key, &json_value::is_string, "text").get<std::string>();
  }
  double number(const std::string& key) const {
    return get(key, &json_value::is_number, "number").get<double>();
  }
  fields object(const std::string& key) const {
    return {get(key, &json_value::is_object, "object"), where_ + ", '" + key + "'"};
  }
  //! Of objects.
  std::vector<fields> list(const std::string& key, const std::string& name) const {
    std::vector<fields> made;
    for (const json_value& each : get(key, &json_value::is_array, "list"))
      made.emplace_back(each, where_ + ", " + name + " " + std::to_string(made.size() + 1));
    return made;
  }
  std::vector<std::string> texts(const std::string& key) const {
    std::vector<std::string> made;
    for (const json_value& each : get(key, &json_value::is_array, "list")) {
      if (!each.is_string()) throw results_error(where_ + ": not all of '" + key + "' is text");
      made.push_back(each.get<std::string>());
    }
    return made;
  }

 private:
  const json_value& get(const std::string& key, bool (json_value::*is)() const noexcept,
                        const char* kind) const {
    const auto found = of_->find(key);
    if (found == of_->end()) throw results_error(where_ + ": there is no '" + key + "'");
    if (!((*found).*is)()) throw results_error(where_ + ": '" + key + "' is no " + kind);
    return *found;
  }
  const json_value* of_;
  std::string where_;
};

//! The files of a folder, all of one device, commit and software.
class results {
 public:
  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all = {"tests", "launch", "overhead", "overlap"};
    return all;
  }

  //! @throws results_error
  explicit results(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder))
      throw results_error(folder.string() + " is no folder");
    std::vector<std::filesystem::path> found;
    for (const auto& each : std::filesystem::directory_iterator(folder))
      if (each.path().extension() == ".json") found.push_back(each.path());
    std::sort(found.begin(), found.end());
    if (found.empty()) throw results_error(folder.string() + " has no .json file");
    for (const std::filesystem::path& each : found) read(each);
    for (const std::filesystem::path& each : found) compare(found.front().stem(), each.stem());
  }

  bool has(const std::string& name) const { return files_.contains(name); }
  std::vector<fields> rows(const std::string& name) const { return file(name).list("rows", "row"); }
  std::vector<std::string> notes(const std::string& name) const {
    return file(name).texts("notes");
  }
  fields about(const std::string& name) const { return file(name).object("about"); }
  //! Of all files.
  fields about() const { return about(files_.begin()->first); }

 private:
  fields file(const std::string& name) const { return {files_.at(name), name + ".json"}; }

  void read(const std::filesystem::path& path) {
    const std::string file_name = path.filename().string();
    const std::string name = path.stem().string();
    if (std::find(names().begin(), names().end(), name) == names().end())
      throw results_error(file_name + " is no result of bench/gpu/run");
    std::ifstream stream(path);
    if (!stream) throw results_error("cannot read " + path.string());
    try {
      files_[name] = json_value::parse(stream);
    } catch (const json_value::parse_error& wrong) {
      throw results_error(file_name + " is no JSON: byte " + std::to_string(wrong.byte));
    }
    if (const std::string within = file(name).text("name"); within != name)
      throw results_error(file_name + " has results of '" + within + "'");
    static_cast<void>(rows(name));
    static_cast<void>(notes(name));
  }

  void compare(const std::string& one, const std::string& other) const {
    for (const std::string key : {"device", "commit", "driver"}) {
      const std::string seen[] = {about(one).text(key), about(other).text(key)};
      expect_same(one, other, key, seen[0], seen[1]);
    }
    for (const std::string key : {"toolkit", "cuda_driver", "multiprocessors"}) {
      const double seen[] = {about(one).number(key), about(other).number(key)};
      expect_same(one, other, key, std::to_string(static_cast<long>(seen[0])),
                  std::to_string(static_cast<long>(seen[1])));
    }
  }
  static void expect_same(const std::string& one, const std::string& other, const std::string& key,
                          const std::string& first, const std::string& second) {
    if (first == second) return;
    throw results_error(one + ".json and " + other + ".json differ in '" + key + "': " + first +
                        " and " + second);
  }

  std::map<std::string, json_value> files_;
};

}  // namespace stretto::bench
