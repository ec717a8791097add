#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "world.hpp"

namespace stretto::test::nccl {

namespace {

struct message {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool taken = false;
};
struct sum {
  std::vector<void*> data{};
  bool done = false;
};

struct gather {
  std::map<int, char*> data{};  // by rank
  bool done = false;
};

template <class Element>
void sum_up(const sum& over, std::size_t count) {
  // Not in the order of the ranks.
  for (std::size_t at = 0; at < count; ++at) {
    Element total = 0;
    for (std::size_t rank = over.data.size(); rank-- > 0;)
      total += static_cast<Element*>(over.data[rank])[at];
    for (void* const each : over.data) static_cast<Element*>(each)[at] = total;
  }
}

//! Whoever reads what is another's finds no number.
template <class Element>
void deal_sums(const gather& over, std::size_t part) {
  for (const auto& [owner, own] : over.data)
    for (std::size_t at = static_cast<std::size_t>(owner) * part, end = at + part; at < end; ++at) {
      Element total = 0;
      for (const auto& [rank, data] : over.data) {
        Element& one = reinterpret_cast<Element*>(data)[at];
        total += one;
        if (rank != owner) one = std::numeric_limits<Element>::quiet_NaN();
      }
      reinterpret_cast<Element*>(own)[at] = total;
    }
}

class local_world : public world {
 public:
  bool join(int, int device) override {
    if (!devices_.insert(device).second) return false;
    ++ranks_;
    return true;
  }
  int ranks() const override { return ranks_; }

  work send(int from, int to, const void* data, std::size_t bytes) override {
    std::shared_ptr<message> sent;
    return [=, this]() mutable {
      if (!sent) {
        sent = std::make_shared<message>(message{data, bytes});
        messages_[{from, to}].push_back(sent);
      }
      return sent->taken;
    };
  }
  work receive(int from, int to, void* data, std::size_t bytes) override {
    return [=, this] {
      auto& waiting = messages_[{from, to}];
      if (waiting.empty()) return false;
      message& sent = *waiting.front();
      if (sent.bytes != bytes) complain_of_sizes();
      std::memcpy(data, sent.data, std::min(bytes, sent.bytes));
      sent.taken = true;
      waiting.pop_front();
      return true;
    };
  }
  work all_reduce(int rank, int size, void* data, std::size_t count,
                  ncclDataType_t type) override {
    int number = -1;  // once it runs
    return [=, this]() mutable {
      const bool arrives = number < 0;
      if (arrives) number = sums_of_[rank]++;
      sum& over = sums_[number];
      if (arrives) over.data.push_back(data);
      if (!over.done && static_cast<int>(over.data.size()) == size) {
        type == ncclDouble ? sum_up<double>(over, count) : sum_up<float>(over, count);
        over.done = true;
      }
      return over.done;
    };
  }

  work reduce_scatter(int rank, int size, void* data, std::size_t part,
                      ncclDataType_t type) override {
    int number = -1;
    return [=, this]() mutable {
      const bool arrives = number < 0;
      if (arrives) number = scatters_of_[rank]++;
      gather& over = scatters_[number];
      if (arrives) over.data[rank] = static_cast<char*>(data);
      if (!over.done && static_cast<int>(over.data.size()) == size) {
        type == ncclDouble ? deal_sums<double>(over, part) : deal_sums<float>(over, part);
        over.done = true;
      }
      return over.done;
    };
  }
  work all_gather(int rank, int size, void* data, std::size_t bytes) override {
    int number = -1;
    return [=, this]() mutable {
      const bool arrives = number < 0;
      if (arrives) number = gathers_of_[rank]++;
      gather& all = gathers_[number];
      if (arrives) all.data[rank] = static_cast<char*>(data);
      if (!all.done && static_cast<int>(all.data.size()) == size) {
        for (const auto& [from, own] : all.data)
          for (const auto& [to, other] : all.data)
            if (from != to)
              std::memcpy(other + static_cast<std::size_t>(from) * bytes,
                          own + static_cast<std::size_t>(from) * bytes, bytes);
        all.done = true;
      }
      return all.done;
    };
  }

 private:
  int ranks_ = 0;
  std::set<int> devices_{};
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<message>>> messages_{};
  std::map<int, int> sums_of_{};  // by rank: so many have begun
  std::map<int, sum> sums_{};
  std::map<int, int> gathers_of_{};  // the same of gathers
  std::map<int, gather> gathers_{};
  std::map<int, int> scatters_of_{};  // and of sums that are dealt
  std::map<int, gather> scatters_{};
};

}  // namespace

std::shared_ptr<world> make_local_world() {
  return std::make_shared<local_world>();
}

}  // namespace stretto::test::nccl
