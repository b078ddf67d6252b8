// The state of a partition in a checkpoint: its LPs, then its pending events.
#include <cmath>
#include <cstring>

#include "engine/checkpoint.h"
#include "pdes/partition.h"

namespace pdes {

// What of an LP's record the LP has lived through.
struct Lived {
  LpId id;
  std::uint32_t sequence;
  std::uint64_t digest;
  Stream stream;
  std::uint32_t there, born;  // of an LP that comes and goes: 1 if it is there, 2 if long-lived (Life)
  std::uint64_t born_digest;  // (Life::digest)
  std::uint64_t bytes;        // of the object that follow
};

namespace {

struct Head {
  Time time;
  std::uint64_t tie;
  LpId destination;
  std::uint32_t type;
};

constexpr std::uint64_t kAdaptEvery = 4096;  // events

std::uint64_t count_in(Archive& part, std::size_t least_size) {
  std::uint64_t count = 0;
  part(count);
  if (count > part.left().size() / least_size) throw Error("a count is too large");
  return count;
}

}  // namespace

void Partition::save(Archive& archive) const {
  std::uint64_t count = own_lps_.size();
  archive(count);
  for (const Lp* own : own_lps_) save_lp(archive, own->id);
  const std::vector<Key> keys = pending.keys();
  count = keys.size();
  archive(count);
  for (const Key& key : keys) {
    Head head{key.time, key.tie, key.event->destination, key.event->type};
    archive(head);
    archive.raw(key.event->payload(), event_size(*key.event) - sizeof(Event));
  }
}

void Partition::save_lp(Archive& archive, LpId id) const {
  Lp& lp = *world.lps[id];
  const LpClass& of = world.class_of(id);
  const bool there = lp.handlers != of.vacant_handlers;
  Lived lived{id, lp.sequence, lp.digest, lp.stream, 0, 0, 0, 0};
  if (there && of.comes_and_goes()) {
    lived.there = Life::of(lp).long_lived ? 2 : 1;
    lived.born = Life::of(lp).born;
    lived.born_digest = Life::of(lp).digest;
  }
  Archive object;
  if (there) of.saving.archive(object, lp.object());
  std::vector<std::byte> bytes = object.take();
  lived.bytes = bytes.size();
  archive(lived);
  archive.raw(bytes.data(), bytes.size());
}

std::vector<std::byte> Partition::packed(LpId id) {
  try {
    Archive archive;
    save_lp(archive, id);
    return archive.take();
  } catch (...) {
    failed_at = name_of(id) + ", on its way to another rank";
    throw;
  }
}

Lp* Partition::unpack(std::span<const std::byte> packed) {
  Archive archive(packed);
  Lived lived{};
  archive(lived);
  Archive object(archive.next(lived.bytes));
  try {
    Lp* lp = make_lp_apart(lived.id);
    restore_lp(lived, object);
    return lp;
  } catch (...) {
    failed_at = name_of(lived.id) + ", on its way from another rank";
    throw;
  }
}

// Each thread reads all parts and takes what belongs to it.
void Partition::restore(const Checkpoint& from) {
  std::size_t lps = 0;
  try {
    for (std::span<const std::byte> bytes : from.parts) {
      Archive part(bytes);
      lps += restore_lps(part);
      restore_events(part);
      if (!part.left().empty()) throw Error("a part is longer than what is in it");
    }
    if (lps != own_lps_.size()) throw Error("LPs are missing");
  } catch (const Error& error) { throw Error(from.path + " cannot be resumed: " + error.what()); }
  now = from.before.at;
}

std::size_t Partition::restore_lps(Archive& part) {
  std::size_t taken = 0;
  for (std::uint64_t left = count_in(part, sizeof(Lived)); left > 0; --left) {
    Lived lived{};
    part(lived);
    if (lived.id >= world.lp_count) throw Error("it has an LP too many");
    Archive object(part.next(lived.bytes));
    if (!world.owner.empty() && world.owner[lived.id] != number) continue;
    restore_lp(lived, object);
    ++taken;
  }
  return taken;
}

void Partition::restore_lp(const Lived& lived, Archive& object) {
  Lp* lp = world.lps[lived.id];
  lp->digest = lived.digest;
  lp->stream = lived.stream;
  lp->sequence = lived.sequence;
  const LpClass& of = world.class_of(lp->id);
  if (lived.there != 0) {
    if (lp->handlers != of.vacant_handlers) throw Error("it has an LP where one is already");
    lp = &occupy(*lp);
    Life::of(*lp).born = lived.born;
    Life::of(*lp).digest = lived.born_digest;
    Life::of(*lp).long_lived = lived.there == 2;
  }
  if (lp->handlers != of.vacant_handlers) of.saving.archive(object, lp->object());
  if (!object.left().empty()) throw Error(of.name + " does not read what it wrote");
}

void Partition::restore_events(Archive& part) {
  for (std::uint64_t left = count_in(part, sizeof(Head)); left > 0; --left) {
    Head head{};
    part(head);
    if (head.type >= sizes_.size() || head.destination >= world.lp_count || !(head.time >= 0 && head.time < world.end))
      throw Error("it has an event that cannot be");
    const auto payload = part.next(sizes_[head.type] - sizeof(Event));
    if (!world.owner.empty() && world.owner[head.destination] != number) continue;
    Event* event = new_event(head.destination, static_cast<std::uint16_t>(head.type), payload.data(), payload.size());
    if (event == nullptr) no_memory();
    pending.push({head.time, head.tie, event});
    if (left % kAdaptEvery == 0) adapt_memory();
  }
}

}  // namespace pdes
