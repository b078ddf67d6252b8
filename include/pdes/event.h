// An event is a header of 8 bytes and its payload, in a block of its own.  The key that orders it travels separately,
// in the pending set, the outboxes and the messages between ranks.
#pragma once

#include <cstdint>
#include <limits>

namespace pdes {

using Time = double;  // virtual time, in the model's own unit
inline constexpr Time kNever = std::numeric_limits<Time>::infinity();
using LpId = std::uint32_t;  // logical processes are numbered from 0
using Priority = unsigned;   // among events at the same time: 0 comes first

inline constexpr unsigned kPriorityBits = 6, kSourceBits = 26, kSequenceBits = 32;
inline constexpr LpId kMaxLps = LpId{1} << kSourceBits;
inline constexpr Priority kLastPriority = (1u << kPriorityBits) - 1;

struct Event {
  LpId destination;
  std::uint16_t type;   // index in the model's list of event types
  std::uint16_t block;  // how the block was allocated: EventMemory
  void* payload() noexcept { return this + 1; }
  const void* payload() const noexcept { return this + 1; }
};
static_assert(sizeof(Event) == 8);

// Events are executed in the order (time, priority, source, sequence); tie holds the last three in one word.
struct Key {
  Time time;
  std::uint64_t tie;
  Event* event;
  friend bool operator<(const Key& a, const Key& b) noexcept {
    return a.time < b.time || (a.time == b.time && a.tie < b.tie);
  }
};
static_assert(sizeof(Key) == 24);

// The sequence numbers of a source wrap after 2^32 events.  They only order events that are pending together, for the
// same time and from the same source, and even after a wrap every run orders these alike.
constexpr LpId source_of(std::uint64_t tie) noexcept {
  return static_cast<LpId>(tie >> kSequenceBits & ((LpId{1} << kSourceBits) - 1));
}
constexpr std::uint64_t tie_of(Priority priority, LpId source, std::uint32_t sequence) noexcept {
  return std::uint64_t{priority} << (kSourceBits + kSequenceBits) | std::uint64_t{source} << kSequenceBits | sequence;
}

}  // namespace pdes
