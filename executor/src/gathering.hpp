#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto::executor {

//! Who has come, and what each gives to the exchange under way: what every bootstrap keeps, whoever
//! carries the bytes. Exchanges follow one another; one begins when all have given to the one
//! before.
class gathering {
 public:
  explicit gathering(int processes) : members_(static_cast<std::size_t>(processes)) {}

  //! @param objection  what is already known to be wrong with it; empty: nothing
  //! @return why the process cannot come; empty: it has come
  std::string join(int process, const std::string& from, const std::string& objection = {});
  //! Whether the process had come, and is there no more.
  bool has_left(int process) const;
  //! @param why  as in "process 3 has failed"; empty: it leaves in peace
  void leave(int process, const std::string& why = {});
  //! Why those who are missing cannot even be turned away.
  void keep_out(const std::string& why) { refused_ = why; }

  //! @return whether all have given now: take() is due
  bool give(int process, std::string_view what, std::string part);
  //! The parts of all; the next exchange begins.
  std::vector<std::string> take();

  //! Why no exchange will ever be complete; empty: this one still may.
  const std::string& broken() const { return broken_; }
  //! Breaks the exchange: whoever is missing has not come in time.
  void give_up();

 private:
  struct member {
    bool present = false;
    bool left = false;
    bool given = false;
    std::string from{};
    std::string part{};
  };

  void look_for_leavers();

  struct leaver {
    int process = 0;
    std::string why{};
  };

  std::vector<member> members_;
  std::vector<leaver> leavers_;  // the first at first: the others may have followed it
  std::string what_{};  // the exchange under way, once somebody has named it
  int namer_ = -1;      // who that was
  int given_ = 0;
  std::string broken_{};
  std::string refused_{};  // who could not come, at last
};

}  // namespace stretto::executor
