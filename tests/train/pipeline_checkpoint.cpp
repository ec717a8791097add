// A checkpoint goes on where it was saved, to the bit, on other ranks, chunks and schedules; what
// is damaged is refused and changes nothing.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/checkpoint.hpp"
#include "pipeline/checkpoint_file.hpp"
#include "pipeline/saves.hpp"
#include "pipeline_support.hpp"

using namespace train;
using namespace pipeline_test;
namespace fs = std::filesystem;

namespace {

bool no_hard_links = false;
//! What happens once, when a checkpoint is complete and not yet in its place.
std::function<void()> meanwhile;
//! Of the places that a file was put in, how many held none.
int empty_places = 0;

}  // namespace

//! In the place of the system's: as file systems without hard links answer.
extern "C" int link(const char* from, const char* to) noexcept {
  if (meanwhile) std::exchange(meanwhile, nullptr)();
  if (!no_hard_links) return ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  errno = EPERM;
  return -1;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (::access(to, F_OK) != 0) ++empty_places;
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace {

//! A folder of its own, removed at the end.
struct folder {
  folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~folder() {
    std::error_code none;
    fs::remove_all(path, none);
  }
  fs::path path = fs::temp_directory_path() / ("stretto_checkpoint_" + std::to_string(::getpid()));
  fs::path file = path / "model.checkpoint";
};

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

pipeline make(const pipeline_settings& settings, const learning_settings& how,
              const config& model = tiny(12, true)) {
  return {model, text(), settings, how};
}

//! Trains the reference and the pipeline on, side by side.
std::string go_on(pipeline& pipelined, reference& whole, int from, int to) {
  const auto how = learning();
  const auto order = pipelined.sums();
  for (int step = from; step <= to; ++step) {
    const step_result result = pipelined.step();
    const step_result expected =
        whole.step(step, order, how.rate.at(step), how.norm_limit, how.rule,
                   [&](int microbatch, auto tokens, auto targets) {
                     text().batch(how.seed, step, microbatch, tokens, targets);
                   });
    const std::string found = first_difference(pipelined, result, &whole, expected);
    if (!found.empty()) return "step " + std::to_string(step) + ": " + found;
  }
  return "";
}

std::vector<float> everything(const pipeline& of) {
  std::vector<float> all;
  for (int layer = 0; layer < of.model().layer_count(); ++layer) {
    const auto state = of.state(layer, 0);
    for (const auto& part : {state.parameters, state.mean, state.square})
      all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

const pipeline_settings four_by_two{.ranks = 4, .microbatches = 4, .chunks = 2};

std::string refusal(const fs::path& file, pipeline& into) {
  const auto before = everything(into);
  const long steps = into.steps_done();
  try {
    load_checkpoint(file, into);
  } catch (const bad_checkpoint& wrong) {
    CHECK(everything(into) == before);
    CHECK(into.steps_done() == steps);
    const std::string words = wrong.what();
    CHECK(words.starts_with(file.string() + ": "));
    return words.substr(file.string().size() + 2);
  }
  return "";
}

}  // namespace

TEST_CASE("saved on 4 x 2, resumed on other ranks, chunks and schedules: the same to the bit") {
  const folder here;
  pipeline first = make(four_by_two, learning());
  reference whole(first.model(), learning().seed);
  REQUIRE(go_on(first, whole, 1, 3) == "");
  save_checkpoint(here.file, first);
  CHECK(first.steps_done() == 3);

  for (const pipeline_settings& settings :
       {pipeline_settings{.ranks = 2, .microbatches = 4, .chunks = 3},
        pipeline_settings{.schedule = "1f1b", .ranks = 3, .microbatches = 6, .chunks = 1},
        pipeline_settings{.schedule = "zbv", .ranks = 2, .microbatches = 4, .chunks = 2},
        pipeline_settings{.schedule = "dualpipe", .ranks = 2, .microbatches = 4, .chunks = 1},
        pipeline_settings{.ranks = 1, .microbatches = 4, .chunks = 1}, four_by_two}) {
    CAPTURE(settings.schedule);
    CAPTURE(settings.ranks);
    // Into a pipeline that has gone elsewhere meanwhile, too.
    for (const int astray : {0, 2}) {
      pipeline second = make(settings, learning());
      for (int step = 0; step < astray; ++step) second.step();
      load_checkpoint(here.file, second);
      CHECK(second.steps_done() == 3);
      reference on(second.model(), learning().seed);
      for (int layer = 0; layer < second.model().layer_count(); ++layer) {
        std::ranges::copy(first.state(layer, 0).parameters, on.stage().parameters(layer).begin());
        std::ranges::copy(first.state(layer, 0).mean, on.stage().mean(layer).begin());
        std::ranges::copy(first.state(layer, 0).square, on.stage().square(layer).begin());
      }
      CHECK(go_on(second, on, 4, 6) == "");
    }
  }
  // And as if there had been no break.
  pipeline second = make({.ranks = 2, .microbatches = 4, .chunks = 3}, learning());
  load_checkpoint(here.file, second);
  CHECK(go_on(second, whole, 4, 6) == "");
}

TEST_CASE("the file does not depend on who wrote it; the one before it is kept") {
  const folder here;
  std::string before;
  for (const pipeline_settings& settings :
       {four_by_two, pipeline_settings{.ranks = 2, .microbatches = 4, .chunks = 3}}) {
    pipeline made = make(settings, learning());
    made.step();
    save_checkpoint(here.file, made);
    const std::string text = read(here.file);
    CHECK((before.empty() || text == before));
    before = text;
    made.step();
    save_checkpoint(here.file, made);
    fs::path previous = here.file;
    previous += ".previous";
    CHECK(read(previous) == before);
    CHECK(read(here.file) != before);
    pipeline old = make(settings, learning());
    load_checkpoint(previous, old);
    CHECK(old.steps_done() == 1);
  }
}

TEST_CASE("only a checkpoint makes way for one") {
  const folder here;
  const pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3};
  pipeline made = make(settings, learning());
  const auto refusal_to_save = [&] {
    const std::string why = why_not_saved(here.file);
    CHECK_THROWS_AS(save_checkpoint(here.file, made), bad_checkpoint);
    return why;
  };
  const fs::path previous = here.file.string() + ".previous";
  for (const fs::path& kept : {here.file, previous}) {
    write(kept, "precious\n");
    CHECK(
        refusal_to_save().ends_with("holds something else than a checkpoint, which would be lost"));
    CHECK(read(kept) == "precious\n");
    fs::remove(kept);
    fs::create_directory(kept);
    CHECK(refusal_to_save().ends_with("Is a directory"));
    fs::remove(kept);
  }
  REQUIRE(::mkfifo(here.file.c_str(), 0600) == 0);
  CHECK(refusal_to_save() == "is no regular file");
  fs::remove(here.file);

  // Nothing, the beginning of one that could not be written to its end, and a checkpoint.
  write(here.file, "");
  CHECK(why_not_saved(here.file).empty());
  save_checkpoint(here.file, made);
  write(here.file, read(here.file).substr(0, 10));
  CHECK(why_not_saved(here.file).empty());
  save_checkpoint(here.file, made);
  save_checkpoint(here.file, made);
  CHECK(fs::exists(previous));
  // Where there is no other, the previous one stays.
  const std::string kept = read(previous);
  fs::remove(here.file);
  made.step();
  save_checkpoint(here.file, made);
  CHECK(read(previous) == kept);
  CHECK(read(here.file) != kept);
}

TEST_CASE("of two runs that save to one file, each puts its own there as a whole") {
  const folder here;
  const pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3};
  std::vector<std::string> saved;
  std::vector<pipeline> runs;
  runs.reserve(3);
  for (int steps = 0; steps < 3; ++steps) {
    runs.push_back(make(settings, learning()));
    for (int step = 0; step < steps; ++step) runs.back().step();
    save_checkpoint(here.file, runs.back());
    saved.push_back(read(here.file));
  }
  const fs::path previous = previous_of(here.file);
  std::vector<fs::path> seen;
  meanwhile = [&] {
    for (const fs::directory_entry& each : fs::directory_iterator(here.path))
      if (each.path() != here.file && each.path() != previous) seen.push_back(each.path());
    save_checkpoint(here.file, runs[1]);
    CHECK(read(here.file) == saved[1]);
    CHECK(read(previous) == saved[2]);
  };
  empty_places = 0;
  save_checkpoint(here.file, runs[0]);
  CHECK(empty_places == 0);
  CHECK(read(here.file) == saved[0]);
  CHECK(read(previous) == saved[1]);
  CHECK(seen == std::vector<fs::path>{here.file.string() + ".new-" + std::to_string(::getpid())});
  CHECK(std::distance(fs::directory_iterator(here.path), {}) == 2);
}

TEST_CASE("what killed processes have left is removed, and nothing else that is called so") {
  const folder here;
  const pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3};
  pipeline made = make(settings, learning());
  const auto beside = [&](const std::string& ending) {
    return fs::path(here.file.string() + ending);
  };
  const std::string own = ".new-" + std::to_string(::getpid());
  save_checkpoint(beside("other"), made);
  const std::string good = read(beside("other"));
  write(here.path / "usual", "");
  CHECK(fs::status(beside("other")).permissions() == fs::status(here.path / "usual").permissions());
  fs::remove(here.path / "usual");
  const auto leave = [&](const std::string& ending, const std::string& contents) {
    write(beside(ending), contents);
    fs::permissions(beside(ending), fs::perms::sticky_bit, fs::perm_options::add);
  };
  // Before it was in its place, while it was written, and where the machine has gone down, too.
  for (const std::string& left : {std::string(".new-1"), std::string(".new-1-2"), own})
    leave(left, good);
  leave(".new-2", good.substr(0, 3));
  leave(".new-3", std::string(100, '\0'));
  // Whoever writes one holds it.
  leave(".new-4", good);
  const int held = ::open(beside(".new-4").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
  save_checkpoint(beside(".new-5"), made);
  write(beside(".new-6"), "precious\n");
  for (const char* not_one : {".new-7x", ".new-", ".new"}) leave(not_one, good);
  fs::create_directory(beside(".new-8"));
  fs::create_symlink(beside("other"), beside(".new-9"));
  REQUIRE(::mkfifo(beside(".new-10").c_str(), 0600) == 0);
  const auto names = [&] {
    std::vector<std::string> endings;
    for (const fs::directory_entry& each : fs::directory_iterator(here.path))
      endings.push_back(each.path().string().substr(here.file.string().size()));
    std::ranges::sort(endings);
    return endings;
  };
  const std::vector<std::string> kept{"",       ".new",    ".new-",  ".new-10", ".new-4", ".new-5",
                                      ".new-6", ".new-7x", ".new-8", ".new-9",  "other"};
  save_checkpoint(here.file, made);
  CHECK(names() == kept);
  CHECK(read(here.file) == good);
  CHECK(read(beside(".new-5")) == good);
  CHECK(read(beside(".new-6")) == "precious\n");
  CHECK(read(beside("other")) == good);
  // Its own name has something else; then nobody holds the other any more.
  write(beside(own), "precious\n");
  ::close(held);
  save_checkpoint(here.file, made);
  CHECK(read(here.file) == good);
  CHECK(read(beside(own)) == "precious\n");
  CHECK_FALSE(fs::exists(beside(".new-4")));
}

TEST_CASE("one that is not written ends nothing; told is each, and what there is at the end") {
  const folder here;
  const pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3};
  pipeline made = make(settings, learning());
  const std::string name = "--save " + here.file.string() + ": ";
  const auto in_the_way = [&](const auto& act) {
    fs::create_directory(previous_of(here.file));
    act();
    fs::remove(previous_of(here.file));
  };
  const std::string why = previous_of(here.file).string() + ": Is a directory";
  saves kept(here.file);
  made.step();
  in_the_way([&] {
    CHECK(kept.add(made, false) ==
          name + "not written after step 1: " + why + "; training goes on");
  });
  CHECK(kept.lacks_last());
  CHECK(kept.complaint() ==
        name + "not written 1 of 1 time, after step 1: " + why + "; it is as it was");
  made.step();
  CHECK(kept.add(made, false).empty());
  CHECK_FALSE(kept.lacks_last());
  CHECK(kept.complaint() ==
        name + "not written 1 of 2 times, after step 1: " + why + "; it has step 2");
  const std::string good = read(here.file);
  made.step();
  in_the_way([&] { CHECK(kept.add(made, true) == name + "not written after step 3: " + why); });
  CHECK(kept.lacks_last());
  CHECK(kept.complaint() ==
        name + "not written 2 of 3 times, the last time after step 3: " + why + "; it has step 2");
  CHECK(read(here.file) == good);
  made.state(5, 0).square[1] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(kept.add(made, false), diverged_checkpoint);
  saves other(here.path / "other");
  CHECK(other.complaint().empty());
}

TEST_CASE("a name that leaves no room for the others is refused before training") {
  const folder here;
  const std::string previous = ".previous", fresh = ".new-" + std::to_string(::getpid());
  const std::string longest(255 - std::max(previous.size(), fresh.size()), 'x');
  CHECK(why_not_saved(here.path / longest).empty());
  CHECK(why_not_saved(here.path / (longest + 'x')) ==
        (here.path / (longest + 'x')).string() +
            (previous.size() >= fresh.size() ? previous : fresh) + ": File name too long");
  CHECK(why_not_saved(here.path / std::string(300, 'x')) == "File name too long");
}

TEST_CASE("what is not finite is not saved, and the file is as it was") {
  const folder here;
  pipeline made = make(four_by_two, learning());
  made.step();
  save_checkpoint(here.file, made);
  const std::string good = read(here.file);
  for (const float wrong : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    pipeline bad = make(four_by_two, learning());
    bad.step();
    bad.state(5, 0).square[1] = wrong;
    std::string words;
    try {
      save_checkpoint(here.file, bad);
    } catch (const bad_checkpoint& refused) {
      words = refused.what();
    }
    CHECK(words ==
          here.file.string() +
              ": is not written: after step 1 layer 5's square is not finite: training has "
              "diverged (try a lower learning rate)");
    CHECK(read(here.file) == good);
    CHECK(std::distance(fs::directory_iterator(here.path), {}) == 1);
  }
}

TEST_CASE("a file says what training went by, and what has changed since is told") {
  const folder here;
  learning_settings how = learning();
  pipeline first = make(four_by_two, how);
  first.step();
  save_checkpoint(here.file, first);
  pipeline same = make({.ranks = 2, .microbatches = 4, .chunks = 3}, how);
  CHECK(load_checkpoint(here.file, same).empty());

  how.rate.peak = 0.25;
  how.rate.steps = 20;
  how.norm_limit = 2;
  config other = tiny(12, true);
  other.microbatch = 2;
  const pipeline_settings more{.ranks = 2, .microbatches = 3, .chunks = 2, .data_parallel = 2};
  const corpus shorter(std::vector<std::uint8_t>(500, 7), 8);
  pipeline second(other, shorter, more, how);
  CHECK(load_checkpoint(here.file, second) ==
        std::vector<std::string>{
            "--steps 20, which was 10", "--learning-rate 0.25, which was 0.01",
            "--clip 2.0, which was 0.5", "--batch 2, which was 1",
            "micro-batches of all replicas 6, which was 4",
            "FILES " + shorter.described() + ", which was " + text().described()});
}

TEST_CASE("what a link leads to is written, and the link stays") {
  const folder here;
  const pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3};
  pipeline made = make(settings, learning());
  fs::create_directory(here.path / "large");
  const fs::path target = here.path / "large" / "model";
  fs::create_symlink("large/model", here.file);
  for (int times = 0; times < 2; ++times) {
    save_checkpoint(here.file, made);
    CHECK(fs::is_symlink(here.file));
    CHECK(fs::is_regular_file(fs::symlink_status(target)));
    made.step();
  }
  CHECK(fs::exists(target.string() + ".previous"));
  CHECK_FALSE(fs::exists(here.file.string() + ".previous"));
  pipeline loaded = make(settings, learning());
  load_checkpoint(here.file, loaded);
  CHECK(loaded.steps_done() == 1);
}

TEST_CASE("where a file has but one name, the one before it is kept, too") {
  const folder here;
  const pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3};
  pipeline made = make(settings, learning());
  save_checkpoint(here.file, made);
  const std::string first = read(here.file);
  made.step();
  no_hard_links = true;
  CHECK_NOTHROW(save_checkpoint(here.file, made));
  no_hard_links = false;
  CHECK(read(here.file.string() + ".previous") == first);
  pipeline loaded = make(settings, learning());
  load_checkpoint(here.file, loaded);
  CHECK(loaded.steps_done() == 1);
}

TEST_CASE("bf16 keeps weights in fp32: a file goes on with either") {
  const folder here;
  pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 3};
  settings.products = precision::bf16;
  pipeline rounding = make(settings, learning());
  for (int step = 0; step < 2; ++step) rounding.step();
  save_checkpoint(here.file, rounding);
  const std::string saved = read(here.file);
  const std::vector<float> weights = everything(rounding);
  for (int layer = 0; layer < rounding.model().layer_count(); ++layer)
    CHECK(std::ranges::any_of(std::as_const(rounding).parameters(layer),
                              [](float one) { return widened(rounded(one)) != one; }));
  const double next = rounding.step().loss;
  // Into others that have gone elsewhere meanwhile.
  pipeline same = make(settings, learning());
  settings.products = precision::fp32;
  pipeline exact = make(settings, learning());
  for (pipeline* each : {&same, &exact}) {
    each->step();
    load_checkpoint(here.file, *each);
    CHECK(everything(*each) == weights);
  }
  save_checkpoint(here.file, exact);
  CHECK(read(here.file) == saved);
  CHECK(same.step().loss == next);
  const double other = exact.step().loss;
  CHECK(other != next);
  CHECK(other == doctest::Approx(next).epsilon(1e-3));
}

TEST_CASE("what is damaged, foreign or absent is refused, and changes nothing") {
  const folder here;
  pipeline made = make(four_by_two, learning());
  made.step();
  CHECK(refusal(here.file, made).starts_with("cannot be read"));
  CHECK(refusal(here.path, made).starts_with("cannot be read"));
  save_checkpoint(here.file, made);
  const std::string good = read(here.file);
  const fs::path bad = here.path / "bad";
  const auto refused = [&](const std::string& contents) {
    write(bad, contents);
    return refusal(bad, made);
  };
  // A bit anywhere: in the header, in the numbers, in the checksum.
  for (std::size_t at = 0; at < good.size();
       at += at < 300 || at + 20 > good.size() ? 1 : good.size() / 50) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    const std::string words = refused(damaged);
    CAPTURE(at);
    CHECK((words.starts_with("is damaged") || words == "is no checkpoint of this trainer"));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{27}, std::size_t{40},
                                 good.size() / 2, good.size() - 1})
    CHECK(refused(good.substr(0, size)) != "");
  CHECK(refused(good + "x").starts_with("is damaged"));
  CHECK(refused("").starts_with("is no checkpoint"));
  save_checkpoint(here.file, made);
  write(here.file, good.substr(0, good.size() - 3));
  CHECK(refusal(here.file, made).find("the one before it is " + here.file.string() + ".previous") !=
        std::string::npos);

  // Sound, but nothing that a run comes to.
  const auto with_line = [](const std::string& of) { return of + checksum_line(of); };
  const std::size_t line = checksum_line("").size();
  const std::size_t header = good.find('\n', good.find('\n') + 1) + 1;
  const std::string rest = good.substr(header + line);
  CHECK(refused(with_line(good.substr(0, header)) + rest) == "");
  std::string much = good.substr(0, header);
  much.replace(much.find("\"step\":1"), 8, "\"step\":18446744073709551615");
  CHECK(refused(with_line(much) + rest) ==
        "says that it has 18446744073709551615 steps behind it: no run has above 2147483647");
  const std::size_t last = made.state(made.model().layer_count() - 1, 0).square.size();
  std::vector<float> numbers(last, std::numeric_limits<float>::infinity());
  const std::string behind = with_line(std::string(bytes_of(numbers)));
  CHECK(refused(good.substr(0, good.size() - behind.size()) + behind) ==
        "layer 11's square is not finite there");
  const fs::path pipe = here.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal(pipe, made) == "is no regular file");

  write(here.file, good);
  auto how = learning();
  how.seed = 4;
  pipeline other_seed = make(four_by_two, how);
  CHECK(refusal(here.file, other_seed) == "is of another run: seed is 3 there and 4 here");
  pipeline deeper = make(four_by_two, learning(), tiny(13, true));
  CHECK(refusal(here.file, deeper) == "is of another run: layers is 10 there and 11 here");
  pipeline untied = make(four_by_two, learning(), tiny(12, false));
  CHECK(refusal(here.file, untied) == "is of another run: tied is true there and false here");
}

TEST_CASE("a file that cannot be written leaves the old one as it was") {
  const folder here;
  pipeline made = make(four_by_two, learning());
  save_checkpoint(here.file, made);
  const std::string good = read(here.file);
  made.step();
  // No more than a few bytes may be written, as on a full disk.
  rlimit usual{};
  getrlimit(RLIMIT_FSIZE, &usual);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{1000, usual.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  std::string words;
  try {
    save_checkpoint(here.file, made);
  } catch (const bad_checkpoint& wrong) {
    words = wrong.what();
  }
  setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, old);
  CHECK(words.find("model.checkpoint: cannot be written: ") != std::string::npos);
  CHECK(read(here.file) == good);
  CHECK(std::distance(fs::directory_iterator(here.path), {}) == 1);
  CHECK_THROWS_AS(save_checkpoint(here.path / "none" / "x", made), bad_checkpoint);
}

TEST_CASE("a head is saved as a whole, and goes on in as many pieces as there are then") {
  const folder here;
  const auto settings = [](int ranks, int shards) {
    return pipeline_settings{
        .schedule = "zbv", .ranks = ranks, .microbatches = 4, .tensor_parallel = shards};
  };
  for (const bool tied : {false, true}) {
    config model = tiny(12, tied);
    model.vocabulary = 64;
    const auto made = [&](int pieces, int ranks, int shards) {
      config cut = model;
      cut.head_pieces = pieces;
      return make(settings(ranks, shards), learning(), cut);
    };
    pipeline first = made(4, 3, 1);
    for (int step = 0; step < 2; ++step) first.step();
    save_checkpoint(here.file, first);
    const std::string saved = read(here.file);
    // Whoever reads it writes the same, and goes on as the first does.
    const step_result expected = first.step();
    for (const int pieces : {1, 2, 16})
      for (const int shards : {1, 2}) {
        CAPTURE(pieces);
        CAPTURE(shards);
        pipeline next = made(pieces, 2, shards);
        load_checkpoint(here.file, next);
        CHECK(next.steps_done() == 2);
        const fs::path again = here.path / "again.checkpoint";
        save_checkpoint(again, next);
        CHECK(read(again) == saved);
        const step_result found = next.step();
        CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-5));
        CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(1e-4));
      }
    // In as many, to the bit, wherever they lie.
    pipeline same = made(4, 2, 1);
    load_checkpoint(here.file, same);
    CHECK(same.step() == expected);
  }
}
