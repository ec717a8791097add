#include "nccl_opening.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nccl_environment.hpp"
#include "plan_ends.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

void make_current(const device& on) {
  cuda::check(cudaSetDevice(on.ordinal()), "cudaSetDevice");
}

//! The largest of the messages, the first of several, which both sides find: with its channels and
//! its protocol connects what any smaller one takes. Of a registered arena NCCL tells the other
//! side only for what it does not send by its protocol for small ones.
int largest_of(const message_list& list) {
  return std::ranges::max_element(list, {}, &message_end::bytes)->instruction;
}

//! When a communicator has its first use, among those of all processes. Were channels taken along
//! the pipeline, each would wait for the one before, as long as connecting takes: of two that meet
//! in a rank one comes in either half, so that pairs of ranks go side by side.
int turn_of(const comm_key& key) {
  if (key.of_group != 0) return 2;
  const auto [low, high] = std::minmax(key.first, key.second);
  return low / std::max(high - low, 1) % 2;
}

//! The first sum of a group of either kind, and the first gather of every size; it has one of them
//! at least. What is summed is of one size.
std::vector<int> firsts_of(const group_part& part) {
  std::vector<int> found;
  std::set<std::pair<action, std::int64_t>> seen;
  for (const collective_end& each : part.collectives)
    if (seen.emplace(each.act, each.gathered).second) found.push_back(each.instruction);
  return found;
}

}  // namespace

nccl_opening::nccl_opening(bootstrap& between, const nccl_settings& settings)
    : between_(between), settings_(settings), lost_(between) {}

void nccl_opening::begin(std::span<const plan_view> plans, time_point until) {
  plans_.assign(plans.begin(), plans.end());
  for (const plan_view& plan : plans_) note_rank(plan);
  exchange_ids(until);
}

void nccl_opening::finish(const std::map<int, device*>& on, nccl_links& links, time_point until) {
  on_ = on;
  until_ = until;
  connect(links);
  warm_up(links);
}

//! The communicators that the rank needs, and how many operations of a step each carries.
void nccl_opening::note_rank(const plan_view& plan) {
  for (const bool sends : {true, false})
    for (const auto& [name, list] : channels_of(plan, sends ? action::send : action::receive))
      wanted_[{0, name.first, name.second}].push_back(
          {.name = "pp:" + std::to_string(name.first) + "->" + std::to_string(name.second),
           .subject =
               "channel " + std::to_string(name.first) + " -> " + std::to_string(name.second),
           .holder = plan.rank,
           .rank = sends ? 0 : 1,
           .size = 2,
           .blocks = settings_.message_blocks,
           .cluster = settings_.cluster,
           .operations = static_cast<int>(list.size()),
           .firsts = {largest_of(list)}});
  for (const int group : groups_of(plan)) {
    group_part part = group_of(plan, group);
    std::sort(part.members.begin(), part.members.end());
    const auto place = std::find(part.members.begin(), part.members.end(), plan.rank);
    wanted_[{1, group, part.members.front()}].push_back(
        {.name = "group:" + std::to_string(group),
         .subject = "group " + std::to_string(group),
         .holder = plan.rank,
         .rank = static_cast<int>(place - part.members.begin()),
         .size = static_cast<int>(part.members.size()),
         .blocks = settings_.sum_blocks,
         .cluster = settings_.cluster,
         .operations = static_cast<int>(part.collectives.size()),
         .firsts = firsts_of(part)});
  }
}

//! Whoever holds a communicator's first rank makes its id.
void nccl_opening::exchange_ids(time_point until) {
  std::string mine;
  for (const auto& [key, places] : wanted_)
    for (const nccl_comm::place& each : places) {
      if (each.rank != 0) continue;
      ncclUniqueId id;
      const ncclResult_t code = ncclGetUniqueId(&id);
      if (code != ncclSuccess)
        throw transport_error(each.subject + ": " + nccl_text(code, "ncclGetUniqueId", nullptr));
      mine.append(reinterpret_cast<const char*>(&key), sizeof key);
      mine.append(id.internal, sizeof id.internal);
    }
  for (const std::string& all : between_.all_gather("nccl ids", mine, until))
    for (std::size_t at = 0; at + sizeof(comm_key) + sizeof(ncclUniqueId) <= all.size();
         at += sizeof(comm_key) + sizeof(ncclUniqueId)) {
      comm_key key;
      std::memcpy(&key, all.data() + at, sizeof key);
      std::memcpy(ids_[key].internal, all.data() + at + sizeof key, sizeof(ncclUniqueId));
    }
}

const plan_view& nccl_opening::plan_of(int rank) const {
  return *std::find_if(plans_.begin(), plans_.end(),
                       [rank](const plan_view& each) { return each.rank == rank; });
}

//! Kernels that wait for their peers hold multiprocessors: were they to take all, what the peers
//! wait for could not run. Ranks that exchange nothing with one another may share a GPU.
void nccl_opening::check_room(int rank, const device& on) {
  if (on.stream(0).native == nullptr)
    throw plan_error("the NCCL transport needs a GPU for rank " + std::to_string(rank));
  const block_count message = blocks_of_message(settings_.message_blocks);
  const block_count collective = blocks_of_sum(settings_.sum_blocks);
  std::map<int, int> blocks;  // by stream, which runs one after the other
  std::set<std::string> why;
  for (const instruction& each : plan_of(rank).instructions) {
    const bool moves = each.act == action::send || each.act == action::receive;
    if (!moves && !is_collective(each.act)) continue;
    const block_count& its = moves ? message : collective;
    blocks[each.stream] = std::max(blocks[each.stream], its.blocks);
    if (!its.why.empty()) why.insert(its.why);
  }
  int& taken = taken_[on.ordinal()];
  for (const auto& [stream, most] : blocks) taken += most;
  if (on.multiprocessors() <= 0 || taken < on.multiprocessors()) return;
  std::string text = "rank " + std::to_string(rank) + ": communication that waits may take " +
                     std::to_string(taken) + " multiprocessors, and the GPU has " +
                     std::to_string(on.multiprocessors());
  for (const std::string& each : why) text += "; " + each + " goes before nccl_settings";
  throw plan_error(text);
}

void nccl_opening::connect(nccl_links& links) {
  for (const auto& [key, places] : wanted_)
    for (const nccl_comm::place& each : places) {
      make_current(*on_.at(each.holder));
      const auto id = ids_.find(key);
      if (id == ids_.end()) throw transport_error(each.subject + ": no process has made its id");
      group_info group;
      if (key.of_group != 0)
        group = plan_of(each.holder).groups[static_cast<std::size_t>(key.first)];
      links.add(key, each, id->second, group).begin();
    }
  for (const auto& [key, held] : links.all())
    for (const auto& each : held) {
      settle(*each, "connecting");
      if (!settings_.registered) continue;
      each->register_arena(on_.at(each->where().holder)->arena());
      settle(*each, "ncclCommRegister");
    }
}

//! Of every channel its largest message, and of every group its first sum and gathers, of its own
//! size and where it will lie, because NCCL connects what an operation takes when it first meets
//! one such. By all processes in one order, and each alone: connecting allocates, which may wait
//! for a kernel that waits for a peer. Arenas are zero before the first step, and remain so;
//! nothing is made here that would have to be freed while a peer that has died is waited for.
void nccl_opening::warm_up(const nccl_links& links) {
  std::map<int, cuda::owned_event> done;
  for (const auto& [rank, on] : on_) {
    make_current(*on);
    done[rank] = cuda::make_event();
  }
  std::vector<std::span<const std::unique_ptr<nccl_comm>>> in_turn;
  for (const int turn : {0, 1, 2})
    for (const auto& [key, held] : links.all())
      if (turn_of(key) == turn) in_turn.emplace_back(held);
  for (const auto& held : in_turn)
    for (std::size_t kind = 0; kind < held.front()->where().firsts.size(); ++kind) {
      // Where one thread holds both ends, neither call may wait for the other.
      held.front()->must(ncclGroupStart(), "ncclGroupStart");
      try {
        for (const auto& each : held) start_first(*each, kind, links);
      } catch (...) {
        static_cast<void>(ncclGroupEnd());  // or whatever the thread asks of NCCL later joins it
        throw;
      }
      held.front()->must(ncclGroupEnd(), "ncclGroupEnd");
      for (const auto& each : held) settle(*each, "the first use");
      for (const auto& each : held) {
        const int rank = each->where().holder;
        make_current(*on_.at(rank));
        cuda::check(cudaEventRecord(done.at(rank).get(), first_stream(rank)), "cudaEventRecord");
      }
      for (const auto& each : held) wait_for(*each, done.at(each->where().holder).get());
    }
}

cudaStream_t nccl_opening::first_stream(int rank) const {
  return static_cast<cudaStream_t>(on_.at(rank)->stream(0).native);
}

void nccl_opening::start_first(const nccl_comm& comm, std::size_t kind,
                               const nccl_links& links) const {
  const nccl_comm::place& at = comm.where();
  const plan_view& plan = plan_of(at.holder);
  const int index = at.firsts[kind];
  const instruction& from = plan.instructions[static_cast<std::size_t>(index)];
  const byte_range part = plan.range_of(from.first_use);
  const buffer_use& use = plan.uses[static_cast<std::size_t>(from.first_use)];
  const std::int64_t offset = plan.buffers[static_cast<std::size_t>(use.buffer)].offset;
  std::byte* const data = on_.at(at.holder)->arena().data() + offset + part.first;
  const operation first{at.holder, from.peer, index, from.what, data, part.bytes};
  const cudaStream_t stream = first_stream(at.holder);
  if (from.act == action::send)
    links.send(first, stream);
  else if (from.act == action::receive)
    links.receive(first, stream);
  else if (from.act == action::all_gather)
    links.gather(first, stream);
  else if (from.act == action::reduce_scatter)
    links.scatter(first, stream, 0);
  else
    links.sum(first, stream, 0);
}

//! Until the GPU has done the communicator's first operation.
void nccl_opening::wait_for(const nccl_comm& comm, cudaEvent_t done) {
  while (!cuda::is_over(cudaEventQuery(done), "cudaEventQuery")) {
    static_cast<void>(comm.ready());
    must_be_there();
    if (std::chrono::steady_clock::now() >= until_)
      throw transport_error(comm.where().subject + ": the first use does not end");
  }
}

void nccl_opening::settle(nccl_comm& comm, const char* call) {
  comm.settle(call, until_, [this] { return must_be_there(), false; });
}

void nccl_opening::must_be_there() {
  const std::string text = lost_.text();
  if (!text.empty()) throw transport_error(text);
}

}  // namespace stretto::executor
