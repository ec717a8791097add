#include "pipeline/saves.hpp"

#include "pipeline/checkpoint.hpp"

namespace train {

std::string saves::add(const pipeline& from, bool last) {
  ++times_;
  try {
    save_checkpoint(file_, from);
  } catch (const diverged_checkpoint&) {
    throw;
  } catch (const bad_checkpoint& wrong) {
    ++failed_;
    lacks_last_ = true;
    failed_step_ = from.steps_done();
    why_ = wrong.why;
    return "--save " + file_.string() + ": not written after step " + std::to_string(failed_step_) +
           ": " + why_ + (last ? "" : "; training goes on");
  }
  lacks_last_ = false;
  saved_step_ = from.steps_done();
  return {};
}

std::string saves::complaint() const {
  if (failed_ == 0) return {};
  return "--save " + file_.string() + ": not written " + std::to_string(failed_) + " of " +
         std::to_string(times_) + (times_ == 1 ? " time" : " times") +
         (failed_ == 1 ? ", after step " : ", the last time after step ") +
         std::to_string(failed_step_) + ": " + why_ +
         (saved_step_ == 0 ? "; it is as it was" : "; it has step " + std::to_string(saved_step_));
}

}  // namespace train
