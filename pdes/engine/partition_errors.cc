// Where a partition's LPs went wrong, in words.
#include <new>

#include "engine/number_text.h"
#include "pdes/partition.h"

namespace pdes {

// Exclusive or with the upper half is its own inverse.
std::uint64_t Partition::unhashed(std::uint64_t tie) noexcept {
  constexpr std::uint64_t kPriority = std::uint64_t{kLastPriority} << (kSourceBits + kSequenceBits);
  std::uint64_t rest = tie & ~kPriority;
  for (std::uint64_t factor : {0x94d049bb133111ebu, 0xbf58476d1ce4e5b9u}) {
    rest ^= rest >> 29;
    std::uint64_t inverse = factor;  // right in 3 bits; each step doubles these
    for (int step = 0; step < 5; ++step) inverse *= 2 - factor * inverse;
    rest = rest * inverse & ~kPriority;
  }
  return (tie & kPriority) | rest;
}

std::string Partition::name_of(LpId id) const { return "LP " + std::to_string(id) + " (" + world.class_of(id).name + ")"; }

std::string Partition::place_of(const Key& key) const {
  const std::uint64_t tie = tie_by_source(key.tie);
  const LpId source = source_of(tie);
  return name_of(*world.lps[key.event->destination]) + ", at time " + text_of(key.time) + " on " +
         world.types[key.event->type].name +
         (source == kOutside && world.lp_count <= kOutside ? " from outside" : " from LP " + std::to_string(source));
}

// Without memory for it the place stays unknown.
void Partition::blame(Event& event) noexcept {
  try {
    failed_at = place_of({now, pending.popped_tie(), &event});
  } catch (const std::bad_alloc&) { failed_at.clear(); }
}

void Partition::no_handler(const Lp& lp, const Event& event) const {
  throw Misdeed("", name_of(lp), "has no handler for " + world.types[event.type].name);
}

void Partition::refuse_to_make(const Lp& lp, const Event& event) const {
  throw Misdeed("", name_of(lp), "is there already: " + world.types[event.type].name + " makes an LP at a vacant id");
}

void Partition::throw_bad_send(const Lp& from, std::int64_t to, Time delay, std::uint16_t type) const {
  std::string what = "sends " + world.types[type].name + " to LP " + std::to_string(to);
  if (to < 0 || to >= world.lp_count)
    throw Misdeed("", name_of(from), what + ": there are only " + std::to_string(world.lp_count) + " LPs");
  if (!(delay >= 0))
    throw Misdeed("", name_of(from), what + " with delay " + text_of(delay) + ": a delay must be 0 or more");
  if (!(now + delay < kNever))
    throw Misdeed("", name_of(from), what + " for time " + text_of(now + delay) + ": a time must be finite");
  throw Misdeed("lookahead violation: ", name_of(from),
                what + " for time " + text_of(now + delay) + ": the delay " + text_of(delay) + " is below the lookahead " +
                    text_of(world.lookahead));
}

void Partition::refuse_priority(const Lp& from, Priority priority) const {
  throw Misdeed("", name_of(from),
                "sends with priority " + std::to_string(priority) + ": the last is " + std::to_string(kLastPriority));
}

void Partition::refuse_end(const Lp& from, const std::string& why) const {
  throw Misdeed("", name_of(from), "ends the run" + why);
}

void Partition::refuse_route(const Lp& from, const Key& key) {
  LpId to = key.event->destination;
  release(key.event);
  throw Misdeed("", name_of(from),
                "sends to LP " + std::to_string(to) +
                    ": it is not among the neighbours it declared, nor on the thread of any " + "neighbour of that thread");
}

void Partition::no_memory() const {
  throw Error("out of memory at time " + text_of(now) + " with " + std::to_string(pending.size()) +
              " events pending on this thread");
}

}  // namespace pdes
