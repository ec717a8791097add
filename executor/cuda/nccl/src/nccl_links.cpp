#include "nccl_links.hpp"

#include "message_head.hpp"

namespace stretto::executor {

nccl_comm& nccl_links::add(const comm_key& key, const nccl_comm::place& at, const ncclUniqueId& id,
                           const group_info& group) {
  held_[key].push_back(std::make_unique<nccl_comm>(at, id));
  nccl_comm& made = *held_[key].back();
  if (key.of_group != 0)
    groups_[{key.first, at.holder}] = {&made, group.elements, group.wide,
                                       static_cast<std::size_t>(group.count),
                                       static_cast<std::size_t>(at.rank)};
  else
    (at.rank == 0 ? sends_ : receives_)[{key.first, key.second}] = &made;
  return made;
}

void nccl_links::send(const operation& what, cudaStream_t on) const {
  nccl_comm& comm = of_send(what);
  comm.must(ncclSend(what.data, static_cast<std::size_t>(what.bytes), ncclInt8, 1, comm.call(), on),
            "ncclSend");
}

void nccl_links::receive(const operation& what, cudaStream_t on) const {
  nccl_comm& comm = of_receive(what);
  comm.must(ncclRecv(what.data, static_cast<std::size_t>(what.bytes), ncclInt8, 0, comm.call(), on),
            "ncclRecv");
}

void nccl_links::sum(const operation& what, cudaStream_t on, std::int64_t step) const {
  const group_side& side = groups_.at({what.peer, what.rank});
  must_hold(what.peer, head_of(what, step), side.elements * (side.wide ? 8 : 4));
  side.comm->must(ncclAllReduce(what.data, what.data, static_cast<std::size_t>(side.elements),
                                side.wide ? ncclDouble : ncclFloat, ncclSum, side.comm->call(), on),
                  "ncclAllReduce");
}

void nccl_links::scatter(const operation& what, cudaStream_t on, std::int64_t step) const {
  const group_side& side = groups_.at({what.peer, what.rank});
  const std::int64_t size = side.wide ? 8 : 4;
  must_hold(what.peer, head_of(what, step), side.elements * size);
  const std::size_t part = static_cast<std::size_t>(side.elements) / side.members;
  side.comm->must(
      ncclReduceScatter(what.data, what.data + side.place * part * static_cast<std::size_t>(size),
                        part, side.wide ? ncclDouble : ncclFloat, ncclSum, side.comm->call(), on),
      "ncclReduceScatter");
}

void nccl_links::gather(const operation& what, cudaStream_t on) const {
  const group_side& side = groups_.at({what.peer, what.rank});
  const std::size_t part = static_cast<std::size_t>(what.bytes) / side.members;
  side.comm->must(ncclAllGather(what.data + side.place * part, what.data, part, ncclInt8,
                                side.comm->call(), on),
                  "ncclAllGather");
}

}  // namespace stretto::executor
