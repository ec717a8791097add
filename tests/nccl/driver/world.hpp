#pragma once

#include <nccl.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>

namespace stretto::test::nccl {

//! What the ranks of a simulated communicator share.
class world {
 public:
  //! Begins when it is asked for the first time, and is asked until it says that it is over.
  using work = std::function<bool()>;

  virtual ~world() = default;
  //! A rank comes, with a GPU. @return whether that is no other rank's
  virtual bool join(int rank, int device) = 0;
  //! How many have come.
  virtual int ranks() const = 0;
  //! Is over when it was received.
  virtual work send(int from, int to, const void* data, std::size_t bytes) = 0;
  virtual work receive(int from, int to, void* data, std::size_t bytes) = 0;
  //! Over floats or doubles, in whatever order: nobody has promised one.
  //! @param size  ranks that it waits for
  virtual work all_reduce(int rank, int size, void* data, std::size_t count,
                          ncclDataType_t type) = 0;
  //! The same, of which each rank gets its part, equally long and in its place, alone.
  virtual work reduce_scatter(int rank, int size, void* data, std::size_t part,
                              ncclDataType_t type) = 0;
  //! In place: the rank's part of so many bytes stands in its place in `data`.
  virtual work all_gather(int rank, int size, void* data, std::size_t bytes) = 0;
};

//! Between threads of this process, from memory to memory.
std::shared_ptr<world> make_local_world();
//! Between processes that name the same folder, by files there.
std::shared_ptr<world> make_file_world(const std::filesystem::path& folder);

//! Of a receive: NCCL would not say so.
void complain_of_sizes();

}  // namespace stretto::test::nccl
