// Saves a run, and says what a run goes on from.
//
// A checkpoint is a head and parts, one for each thread that there was: its LPs and its pending events.  Which part
// something is in does not matter, so a run goes on with any number of threads and ranks.  It is taken where every event is
// in some pending set, none in an outbox, a channel or a message.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint_file.h"
#include "pdes/archive.h"
#include "pdes/partition.h"
#include "pdes/result.h"

namespace pdes {

struct Team;

// What was counted before, and goes on.
struct Before {
  Time at = 0;
  Time end = kNever;  // that LPs had asked for
  double wall_s = 0;
  Counts counts;
  std::vector<std::uint64_t> executed_by_type;
  std::vector<std::byte> ended;  // the report of LPs that had ended
  template <class A>
  void serialize(A& archive) {
    archive(at, end, wall_s, counts, executed_by_type, ended);
  }
};

// A checkpoint that was read.
struct Checkpoint {
  // Throws Error if the bytes are damaged or of another simulation.
  Checkpoint(std::vector<std::byte> bytes, const std::string& from, const World& world, const std::string& model);
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::string path;
  const std::vector<std::byte> file;
  Before before;
  std::span<const std::byte> elsewhere;  // Simulation::on_checkpoint; of the file, as the parts
  std::vector<std::span<const std::byte>> parts;
};

// Takes checkpoints.  Each of them: all threads meet, each takes its part, all meet again, the first thread writes.
class Saver {
 public:
  Saver(Team& team, std::atomic<bool>& requested) noexcept;

  // For the first thread of each rank: whether all should meet for a checkpoint.
  bool is_due() const noexcept;
  // For each thread, when all its events are in its pending set.
  void take(unsigned thread, bool incomplete) noexcept;
  // For the first thread, when all have: on all ranks.  A failure is reported, and nothing else.
  void write(Time at);
  std::uint64_t written() const noexcept { return written_; }

  std::function<void(const Saved&)> on_save;
  std::function<std::vector<std::byte>()> save_elsewhere;  // called by the first thread of the first rank

 private:
  using Clock = std::chrono::steady_clock;
  struct Part {
    std::string error;  // why it could not be taken
    Counts counts;
    std::vector<std::uint64_t> executed_by_type;
    std::vector<std::byte> ended, bytes;
    template <class A>
    void serialize(A& archive) {
      archive(error, counts, executed_by_type, ended, bytes);
    }
  };
  std::vector<Part> of_all_ranks();
  void write_file(Time at, std::vector<Part> parts);

  Team& team_;
  std::atomic<bool>& requested_;
  std::vector<Part> parts_;           // by thread; written by it
  std::vector<std::byte> elsewhere_;  // written and read by the first thread
  Clock::time_point next_;
  std::uint64_t written_ = 0;
};

}  // namespace pdes
