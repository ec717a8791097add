#include "gathering.hpp"

#include <utility>

namespace stretto::executor {
namespace {

std::string name_of(std::size_t process) {
  return "process " + std::to_string(process);
}

}  // namespace

std::string gathering::join(int process, const std::string& from, const std::string& objection) {
  const bool exists = process >= 0 && static_cast<std::size_t>(process) < members_.size();
  std::string wrong = objection;
  if (wrong.empty() && !exists)
    wrong = "there are " + std::to_string(members_.size()) + " processes only";
  if (wrong.empty()) {
    member& mine = members_[static_cast<std::size_t>(process)];
    if (!mine.present && !mine.left) {
      mine.present = true;
      mine.from = from;
      return {};
    }
    wrong = "it has come before, from " + mine.from;
  }
  wrong = "process " + std::to_string(process) + " from " + from + ": " + wrong;
  refused_ = "turned away: " + wrong;
  return wrong;
}

bool gathering::has_left(int process) const {
  const auto at = static_cast<std::size_t>(process);
  return process >= 0 && at < members_.size() && members_[at].left;
}

void gathering::leave(int process, const std::string& why) {
  member& mine = members_[static_cast<std::size_t>(process)];
  if (!mine.left) leavers_.push_back({process, why});
  mine.present = false;
  mine.left = true;
  if (given_ > 0) look_for_leavers();
}

void gathering::look_for_leavers() {
  for (const bool failed : {true, false})
    for (const leaver& each : leavers_) {
      const auto at = static_cast<std::size_t>(each.process);
      if (!broken_.empty() || members_[at].given || each.why.empty() == failed) continue;
      broken_ = "exchange '" + what_ + "': " + name_of(at) +
                (failed ? " " + each.why : " has left before it");
    }
}

bool gathering::give(int process, std::string_view what, std::string part) {
  if (!broken_.empty()) return false;
  if (given_ == 0) {
    what_ = what;
    namer_ = process;
  } else if (what_ != what) {
    broken_ = name_of(static_cast<std::size_t>(process)) + " is at exchange '" + std::string(what) +
              "', " + name_of(static_cast<std::size_t>(namer_)) + " at '" + what_ + "'";
    return false;
  }
  member& mine = members_[static_cast<std::size_t>(process)];
  mine.part = std::move(part);
  mine.given = true;
  ++given_;
  look_for_leavers();
  return broken_.empty() && given_ == static_cast<int>(members_.size());
}

std::vector<std::string> gathering::take() {
  std::vector<std::string> all;
  all.reserve(members_.size());
  for (member& each : members_) {
    all.push_back(std::move(each.part));
    each.part.clear();
    each.given = false;
  }
  given_ = 0;
  return all;
}

void gathering::give_up() {
  if (!broken_.empty()) return;
  std::string text;
  int missing = 0;
  for (std::size_t at = 0; at < members_.size(); ++at) {
    if (members_[at].given) continue;
    // A few names are enough to look for the reason.
    if (++missing > 8) continue;
    text += (missing > 1 ? ", " : "") + name_of(at) +
            (members_[at].present ? " has come, but not this far" : " has not come");
  }
  if (missing > 8) text += " and " + std::to_string(missing - 8) + " more";
  broken_ = "exchange '" + what_ + "' is not complete in time: " + text;
  if (!refused_.empty()) broken_ += "; " + refused_;
}

}  // namespace stretto::executor
