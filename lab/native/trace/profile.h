// What a trace says about its program: how much, how large, how long, by which threads.
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "trace.h"

namespace hm::trace {

class Profile {
 public:
  // Upper bound of the bucket (inclusive) to count.
  using Histogram = std::map<uint64_t, uint64_t>;

  static Profile of(const std::filesystem::path& file);
  void add(const Event& event);
  void finish(Header read);  // after the last event

  Header header;
  uint64_t max_in_use = 0;          // U: most bytes alive at once
  uint64_t cross_thread_frees = 0;  // by another thread than the one that allocated the block
  uint64_t never_freed = 0;
  uint64_t never_freed_bytes = 0;
  Histogram sizes;                                    // by powers of two
  Histogram lifetimes;                                // by powers of ten; until freed or reallocated
  std::vector<std::pair<uint64_t, uint64_t>> memory;  // time, bytes alive; at about equal distances

  double mean_size() const;

 private:
  struct Block {
    uint64_t size;
    uint64_t time;
    uint32_t thread;
    bool is_live;
  };

  void sample(uint64_t time, bool is_last);

  std::vector<Block> blocks_;
  uint64_t in_use_ = 0;
  uint64_t sample_distance_ = 1;
};

}  // namespace hm::trace
