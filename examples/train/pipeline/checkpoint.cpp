#include "pipeline/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "model/layer.hpp"
#include "model/pieces.hpp"
#include "model/shards.hpp"
#include "pipeline/checkpoint_file.hpp"
#include "pipeline/fresh_file.hpp"
#include "tool/whole_file.hpp"

namespace train {
namespace {

using stretto::tool::behind_links;
using stretto::tool::folder_of;
using stretto::tool::why_not_filled;

//! What must be the same when training goes on.
nlohmann::ordered_json identity(const pipeline& of) {
  const config& model = of.model();
  return {{"layers", model.layers},
          {"width", model.width},
          {"heads", model.heads},
          {"context", model.context},
          {"vocabulary", model.vocabulary},
          {"expansion", model.expansion},
          {"tied", model.tied},
          {"seed", of.learning().seed}};
}

//! What may be another when training goes on, but then it is not what it would have been. By the
//! names in which it is told.
nlohmann::ordered_json course(const pipeline& of) {
  const learning_settings& learning = of.learning();
  return {{"--steps", learning.rate.steps},
          {"--learning-rate", learning.rate.peak},
          {"--clip", learning.norm_limit},
          {"--batch", of.model().microbatch},
          {"micro-batches of all replicas", of.sizes().microbatches * of.copies()},
          {"FILES", of.text().described()}};
}

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float one) { return std::isfinite(one); });
}

//! The model as it is saved: neither in shards nor with its head in pieces.
config saved_model(const pipeline& of) {
  return with_whole_head(unsharded(of.model()));
}

//! Calls use(layer of the pipeline's model) for each that a layer of the saved one is there.
void each_layer_of(const pipeline& of, int saved, auto&& use) {
  const config& model = of.model();
  const int count = saved <= model.layers ? 1 : model.head_pieces;
  for (int layer = saved; layer < saved + count; ++layer) use(layer);
}

//! Where this process leads; of several processes, all call it.
std::vector<float> gathered_saved(const pipeline& from, int saved, layer_part part) {
  if (saved <= from.model().layers) return from.gathered(saved, part);
  std::vector<float> made(from.leads() ? parameter_scalars(saved_model(from), saved) : 0);
  each_layer_of(from, saved, [&](int layer) {
    const std::vector<float> piece = from.gathered(layer, part);
    if (from.leads()) put_piece<float>(unsharded(from.model()), layer, piece, made);
  });
  return made;
}

//! Hands over what is saved, part by part and in its order, where this process leads.
void each_saved(const pipeline& from, auto&& take) {
  for (int layer = 0; layer < saved_model(from).layer_count(); ++layer)
    for (const auto& [part, name] : saved_parts)
      take(saved_part{.layer = layer, .part = part, .name = name},
           gathered_saved(from, layer, part));
}

bool holds_saved(const pipeline& into, int saved) {
  bool found = false;
  each_layer_of(into, saved, [&](int layer) { found = found || into.holds(layer); });
  return found;
}

void set_saved(pipeline& into, const saved_part& of, const std::vector<float>& numbers) {
  if (of.layer <= into.model().layers) return into.set_whole(of.layer, of.part, numbers);
  const config model = unsharded(into.model());
  each_layer_of(into, of.layer, [&](int layer) {
    std::vector<float> piece(parameter_scalars(model, layer));
    take_piece<float>(model, layer, numbers, piece);
    into.set_whole(layer, of.part, piece);
  });
}

//! Why it may not make way for a checkpoint; empty: it may.
std::string why_kept(const std::filesystem::path& file) {
  std::error_code none;
  const std::filesystem::file_status found = std::filesystem::symlink_status(file, none);
  // A name that is too long, say.
  if (!std::filesystem::status_known(found)) return none.message();
  if (!std::filesystem::exists(found)) return {};
  if (std::filesystem::is_directory(found)) return std::strerror(EISDIR);
  if (!std::filesystem::is_regular_file(found)) return "is no regular file";
  const std::string_view any_version = checkpoint_magic.substr(0, checkpoint_magic.size() - 2);
  const descriptor old(file, O_RDONLY);
  std::string start(any_version.size(), '\0');
  const ssize_t size = old.open() ? old.read(0, start) : -1;
  if (size < 0) return std::strerror(errno);
  start.resize(static_cast<std::size_t>(size));
  // A part of the beginning is what is left of one that could not be written.
  if (any_version.starts_with(start)) return {};
  return "holds something else than a checkpoint, which would be lost";
}

//! Gives what the file holds its second name, so that at no time there is none. Where a file can
//! have but one, there is the previous one for a moment.
//! @return whether it has it; else see `errno`
bool keep_old(const std::filesystem::path& file) {
  const std::filesystem::path previous = previous_of(file);
  std::error_code absent;
  // Then the previous one may be all that there is.
  if (!std::filesystem::exists(file, absent) && !absent) return true;
  // Another run that saves to this file may keep one between the two calls.
  for (int times = 0; times < 100; ++times) {
    std::error_code none;
    std::filesystem::remove(previous, none);
    if (::link(file.c_str(), previous.c_str()) == 0 || errno == ENOENT) return true;
    if (errno != EEXIST) return std::rename(file.c_str(), previous.c_str()) == 0 || errno == ENOENT;
  }
  return true;
}

//! What is in a checkpoint beside its numbers.
struct checkpoint_header {
  long step = 0;
  std::vector<std::string> changes;  // as load_checkpoint() returns them
};

checkpoint_header read_header(const std::filesystem::path& path, std::string_view line,
                              const pipeline& into) {
  constexpr std::uint64_t most_steps = std::numeric_limits<std::int32_t>::max();
  const auto header = nlohmann::ordered_json::parse(line, nullptr, false);
  const auto step = header.is_object() ? header.value("step", nlohmann::ordered_json())
                                       : nlohmann::ordered_json();
  if (!step.is_number_unsigned()) throw bad_checkpoint(path, "has no header that says its step");
  if (step.get<std::uint64_t>() > most_steps)
    throw bad_checkpoint(path, "says that it has " + step.dump() +
                                   " steps behind it: no run has above " +
                                   std::to_string(most_steps));
  const nlohmann::ordered_json mine = identity(into);
  for (const auto& [name, wanted] : mine.items()) {
    const auto found = header.value(name, nlohmann::ordered_json());
    if (found != wanted)
      throw bad_checkpoint(path, "is of another run: " + name + " is " + found.dump() +
                                     " there and " + wanted.dump() + " here");
  }
  checkpoint_header made{.step = step.get<long>(), .changes = {}};
  const auto words = [](const nlohmann::ordered_json& of) {
    return of.is_string() ? of.get<std::string>() : of.dump();
  };
  const nlohmann::ordered_json now = course(into);
  for (const auto& [name, value] : now.items()) {
    const auto then = header.value(name, nlohmann::ordered_json());
    if (!then.is_null() && then != value)
      made.changes.push_back(name + ' ' + words(value) + ", which was " + words(then));
  }
  return made;
}

}  // namespace

std::filesystem::path previous_of(const std::filesystem::path& file) {
  return with_ending(behind_links(file), ".previous");
}

std::string why_not_saved(const std::filesystem::path& named) {
  const std::filesystem::path file = behind_links(named);
  for (const std::filesystem::path& each : {file, previous_of(file)}) {
    const std::string why = why_kept(each);
    if (!why.empty()) return each == named ? why : each.string() + ": " + why;
  }
  // Whatever has this name stays, but it must not be too long.
  const std::filesystem::path fresh = stretto::tool::fresh_name(file, 1);
  std::error_code none;
  if (!std::filesystem::status_known(std::filesystem::symlink_status(fresh, none)))
    return fresh.string() + ": " + none.message();
  return why_not_filled(folder_of(file));
}

namespace {

//! Where this process leads. @return why the file is as it was; nothing: it is written
//! @throws diverged_checkpoint
std::optional<bad_checkpoint> write_saved(const std::filesystem::path& named,
                                          const pipeline& from) {
  const std::filesystem::path file = behind_links(named);
  std::optional<bad_checkpoint> wrong;
  const auto note = [&](const char* what) {
    if (!wrong) wrong.emplace(file, std::string(what) + ": " + std::strerror(errno));
  };
  std::optional<fresh_file> fresh;
  if (const std::string why = why_not_saved(named); !why.empty()) {
    wrong.emplace(named, why);
  } else {
    remove_leftovers(file);
    if (!fresh.emplace(file).open()) note("cannot be written");
  }
  const auto write = [&](std::string_view text, std::string_view sum) {
    if (!wrong && !(fresh->write(text) && fresh->write(sum))) note("cannot be written");
  };
  nlohmann::ordered_json header = identity(from);
  header["step"] = from.steps_done();
  header.update(course(from));
  const std::string head = std::string(checkpoint_magic) + header.dump() + '\n';
  write(head, checksum_line(head));
  // What is wrong here keeps the others from nothing: they bring what they hold, and go on.
  std::string diverged;
  each_saved(from, [&](const saved_part& part, const std::vector<float>& numbers) {
    if (diverged.empty() && !all_finite(numbers)) diverged = part.words();
    if (!wrong) write(bytes_of(numbers), checksum_line(bytes_of(numbers)));
  });
  if (!diverged.empty())
    throw diverged_checkpoint(file, "is not written: after step " +
                                        std::to_string(from.steps_done()) + " " + diverged +
                                        " is not finite: training has diverged (try a lower "
                                        "learning rate)");
  if (!wrong && !fresh->sync()) note("cannot be written");
  if (!wrong && !keep_old(file)) note("the old one cannot be kept");
  if (!wrong && !fresh->put()) note("cannot be put in its place");
  if (wrong) return wrong;
  // A folder that cannot be synchronised leaves the rename to the system.
  if (const descriptor names(folder_of(file), O_RDONLY | O_DIRECTORY); names.open()) names.sync();
  return {};
}

}  // namespace

void save_checkpoint(const std::filesystem::path& file, const pipeline& from) try {
  std::optional<bad_checkpoint> wrong;
  if (from.leads())
    wrong = write_saved(file, from);
  else
    each_saved(from, [](const saved_part&, const std::vector<float>&) {});
  // Else the others' next step, and its deadline, would begin while a slow disk is written.
  from.exchange("written", {}, true, from.for_leader());
  if (wrong) throw bad_checkpoint(*wrong);
} catch (const stretto::executor::bootstrap_error& lost) {
  throw stretto::executor::bootstrap_error("the checkpoint after step " +
                                           std::to_string(from.steps_done()) +
                                           ", which process 0 writes: " + lost.what());
}

std::vector<std::string> load_checkpoint(const std::filesystem::path& file, pipeline& into) {
  std::optional<saved_file> from;
  std::vector<saved_part> mine;
  checkpoint_header header;
  // What the others must have found, too: it has all checksums, and so all numbers.
  std::string found;
  std::optional<bad_checkpoint> wrong;
  try {
    from.emplace(file);
    header = read_header(file, from->header(), into);
    std::string checksums;
    for (const saved_part& each : from->parts(saved_model(into))) {
      checksums += from->checksum(each);
      if (holds_saved(into, each.layer)) mine.push_back(each);
    }
    for (const saved_part& each : mine)
      if (!all_finite(from->numbers(each)))
        throw bad_checkpoint(file, each.words() + " is not finite there");
    found = "step " + std::to_string(header.step) + ", " + checksum_line(checksums);
    found.pop_back();
  } catch (const bad_checkpoint& here) {
    wrong = here;
  }
  // None goes on when one cannot.
  const std::vector<std::string> all = into.exchange(
      "checkpoint", wrong ? wrong->what() : found, true, pipeline::at_files);
  if (wrong) throw bad_checkpoint(*wrong);
  for (std::size_t process = 0; process < all.size(); ++process)
    if (all[process] != found)
      throw bad_checkpoint(file, found + ", but process " + std::to_string(process) + " has " +
                                     all[process]);
  for (const saved_part& each : mine) set_saved(into, each, from->numbers(each));
  into.resume_after(header.step);
  // Else the first to have read it would wait in a step.
  into.exchange("checkpoint read", {}, true, pipeline::at_files);
  return header.changes;
}

}  // namespace train
