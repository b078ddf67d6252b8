#include "profile.h"

#include <algorithm>
#include <bit>

namespace hm::trace {
namespace {

constexpr size_t kMaxSamples = 128;

uint64_t power_of_two_from(uint64_t number) { return number <= 1 ? number : std::bit_ceil(number); }

uint64_t power_of_ten_from(uint64_t number) {
  uint64_t bound = 1;
  while (bound < number && bound < 1'000'000'000'000'000'000) bound *= 10;
  return bound;
}

}  // namespace

Profile Profile::of(const std::filesystem::path& file) {
  Profile profile;
  profile.finish(read(file, [&](const Event& event) { profile.add(event); }));
  return profile;
}

void Profile::finish(Header read) {
  header = std::move(read);
  sample(header.duration, true);
  for (const Block& block : blocks_) {
    never_freed += block.is_live;
    if (block.is_live) never_freed_bytes += block.size;
  }
}

double Profile::mean_size() const {
  return header.blocks() == 0 ? 0 : static_cast<double>(header.requested) / static_cast<double>(header.blocks());
}

void Profile::add(const Event& event) {
  sample(event.time, false);
  if (event.ends()) {
    Block& block = blocks_[event.ended()];
    block.is_live = false;
    in_use_ -= block.size;
    ++lifetimes[power_of_ten_from(event.time - block.time)];
    if (event.kind == Kind::kFree && block.thread != event.thread) ++cross_thread_frees;
  }
  if (event.makes()) {
    blocks_.push_back({.size = event.size, .time = event.time, .thread = event.thread, .is_live = true});
    in_use_ += event.size;
    max_in_use = std::max(max_in_use, in_use_);
    ++sizes[power_of_two_from(event.size)];
  }
}

// What was alive before `time`.  When the array is full every second sample is dropped and the distance doubles, so
// that one pass suffices for a trace of any length.
void Profile::sample(uint64_t time, bool is_last) {
  if (!memory.empty() && !is_last && time < memory.back().first + sample_distance_) return;
  memory.emplace_back(time, in_use_);
  if (memory.size() <= kMaxSamples) return;
  for (size_t index = 0; 2 * index < memory.size(); ++index) memory[index] = memory[2 * index];
  memory.resize((memory.size() + 1) / 2);
  sample_distance_ *= 2;
}

}  // namespace hm::trace
