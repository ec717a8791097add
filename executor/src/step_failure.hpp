#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "stretto/executor/error.hpp"
#include "stretto/executor/meetings.hpp"
#include "stretto/executor/monitor.hpp"
#include "stretto/executor/runner.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! What is said of a step that failed, before it is known which threads are left.
struct diagnosis {
  failure kind = failure::stage;
  culprit where{};
  std::string text{};  //!< of the culprit, in one line
  std::string more{};  //!< lines below it; empty: none
  std::exception_ptr cause{};
  std::string flight_record{};
};

//! Tells what a step failed with. It looks at what the ranks have done so far, so it is asked
//! before they are aborted.
class step_failure {
 public:
  //! @param checked  whether races are looked for in what is issued
  //! @param issuing  where the thread that issues for all ranks stopped, if it did not come to the
  //!                 end
  step_failure(std::span<const plan_view> plans, std::span<const std::unique_ptr<runner>> ranks,
               const meetings& met, bool checked, std::int64_t step, std::optional<place> issuing)
      : plans_(plans),
        ranks_(ranks),
        met_(met),
        checked_(checked),
        step_(step),
        issuing_(issuing) {}

  diagnosis reported(const monitor::report& first) const;
  //! @param calls  the thread that issues runs callbacks, too, which may have held it up
  diagnosis late(bool calls) const;

  // Of a step as a graph, of which no progress is known.
  diagnosis replay_reported(const monitor::report& first) const;
  diagnosis replay_late() const;
  diagnosis not_replayed(const std::exception_ptr& cause) const;

 private:
  culprit culprit_at(place at) const;
  std::string name_of(place at) const;
  std::string step_text() const { return "step " + std::to_string(step_); }

  std::span<const plan_view> plans_;
  std::span<const std::unique_ptr<runner>> ranks_;
  const meetings& met_;
  bool checked_;
  std::int64_t step_;
  std::optional<place> issuing_;
};

}  // namespace stretto::executor
