// A line of CSV for each step, written as it goes (--log).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "model/reference.hpp"

namespace train {

//! What is known of a step when it is over.
struct logged_step {
  long number = 0;
  step_result result{};
  double learning_rate = 0;
  double seconds = 0;
  double tokens = 0;
  std::optional<double> idle{};  //!< part of the workers' time in which they ran no job
};

//! One step a line, numbers as they are read back to the bit. What is not known stays empty.
class step_log {
 public:
  //! @param goes_on  behind the steps that the file has; else it must be empty or new
  //! @throws bad_setting when it cannot be written, holds something else, or steps of another run
  step_log(const std::filesystem::path& file, bool goes_on);
  ~step_log();
  step_log(const step_log&) = delete;
  step_log& operator=(const step_log&) = delete;

  //! A line is there as a whole or not at all. What cannot be written is left out.
  //! @return why, the first time that it cannot; else empty
  std::string add(const logged_step& step);
  //! "--log FILE: 3 steps are missing: No space left on device"; empty: none are.
  std::string complaint() const;

 private:
  bool write(std::string_view line);

  std::filesystem::path file_;
  int number_ = -1;
  std::int64_t end_ = 0;  // of the last whole line
  long missing_ = 0;
  int why_ = 0;
};

}  // namespace train
