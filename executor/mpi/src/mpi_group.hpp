#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "message_head.hpp"
#include "mpi_requests.hpp"
#include "ordered_sum.hpp"
#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! One member's side of a group's collectives.
class mpi_group {
 public:
  struct member {
    int rank = 0;
    int process = 0;
    int send_tag = 0;     //!< of what goes to it
    int receive_tag = 0;  //!< of what comes from it
  };
  struct place {
    int group = 0;
    int rank = 0;                   //!< whose side this is
    std::vector<member> members{};  //!< in the order of their ranks, this one included
    std::int64_t elements = 0;
    bool wide = false;
    std::int64_t gathered = 0;  //!< bytes of the largest buffer that is gathered
  };

  mpi_group(MPI_Comm on, place at, const mpi_watch& watch);

  std::int64_t next() { return issued_++; }

  //! On a stream. Returns early when stopped.
  //! @throws transport_error when the members' operations do not fit, MPI fails, another process
  //!         has failed, or a member has left
  void all_reduce(const operation& what, std::int64_t step, std::int64_t number);
  //! The same.
  void all_gather(const operation& what, std::int64_t step, std::int64_t number);
  void reduce_scatter(const operation& what, std::int64_t step, std::int64_t number);

 private:
  void sum(const operation& what, std::int64_t step, std::int64_t number, sum_to whom);
  template <class Element>
  void sum(const operation& what, std::int64_t step, sum_to whom);
  void gather(const operation& what, std::int64_t step);
  template <class Call>
  void for_others(const Call& call) const;
  //! What came from all others fits what this one does.
  void must_meet_others(const message_head& head);
  // Offsets of what goes to a member, and of what comes from it.
  std::size_t outgoing(std::size_t to) const { return to * room_; }
  std::size_t incoming(std::size_t from) const { return (at_.members.size() + from) * room_; }
  //! The largest part of any member, in bytes.
  std::size_t largest_part() const;

  const place at_;
  const mpi_watch& watch_;
  std::size_t mine_ = 0;  // place among the members
  std::size_t room_;      // for a head and a part
  // First what goes to each member, then what comes from each; the sum of this one's part last.
  mpi_requests requests_;
  std::int64_t issued_ = 0;
  std::atomic<std::int64_t> done_{0};
  bool ended_ = false;
};

}  // namespace stretto::executor
