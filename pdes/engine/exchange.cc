#include "engine/exchange.h"

#include <chrono>
#include <cstring>
#include <new>

#include "engine/team.h"

namespace pdes {
namespace {

struct Head {
  Time time;
  std::uint64_t tie;
  Event event;
};
static_assert(sizeof(Head) == 24);

}  // namespace

Exchange::Exchange(Team& team, Ranks& ranks)
    : team_(team), ranks_(ranks), outgoing_(static_cast<std::size_t>(ranks.count())), arrivals_(team.threads()) {}

// The other ranks wait for what is half packed.
template <class Work>
void Exchange::or_abort(Work&& work) {
  try {
    work();
  } catch (const std::bad_alloc&) { ranks_.abort("out of memory for events of other ranks"); }
}

void Exchange::begin(unsigned parity, ReducingBarrier::Reduction here, Beside beside) {
  beside_ = beside;
  or_abort([&] {
    pack(parity);
    ranks_.begin_exchange(outgoing_, {here.least, here.flags, team_.end()});
  });
}

ReducingBarrier::Reduction Exchange::end(double& blocked_s) {
  auto began = std::chrono::steady_clock::now();
  Ranks::Vote all{};
  or_abort([&] { all = ranks_.end_exchange(); });
  blocked_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  or_abort([&] {
    for (int rank = 0; rank < ranks_.count(); ++rank)
      if (rank != ranks_.rank()) unpack(static_cast<unsigned>(rank), ranks_.received(rank));
  });
  if (beside_ == Beside::lps)
    for (auto& message : outgoing_) message = {};  // no window needs as much
  team_.lower_end(all.end);
  return {all.least, all.flags};
}

void Exchange::pack(unsigned parity) {
  for (unsigned rank = 0; rank < outgoing_.size(); ++rank) pack_beside(rank);
  Partition& first = *team_.partitions[0];
  for (auto& partition : team_.partitions) {
    auto& boxes = partition->outboxes[parity];
    for (std::size_t to = 0; to < boxes.size(); ++to) {
      std::size_t rank = to / team_.threads();
      if (rank == static_cast<std::size_t>(ranks_.rank())) continue;
      auto& message = outgoing_[rank];
      for (const Key& key : boxes[to]) {
        Head head{key.time, key.tie, *key.event};
        std::size_t size = first.event_size(*key.event) - sizeof(Event), at = message.size();
        message.resize(at + sizeof head + size);
        std::memcpy(message.data() + at, &head, sizeof head);
        std::memcpy(message.data() + at + sizeof head, key.event->payload(), size);
        first.release(key.event);
      }
      boxes[to].clear();
    }
  }
}

void Exchange::pack_beside(unsigned rank) {
  auto& message = outgoing_[rank];
  message.clear();
  if (rank == static_cast<unsigned>(ranks_.rank())) return;
  if (beside_ == Beside::loads) team_.load_board->write_loads(message);
  if (beside_ == Beside::lps) team_.load_board->write_leaving(message, rank);
}

void Exchange::unpack(unsigned rank, std::span<const std::byte> message) {
  if (beside_ == Beside::loads) message = team_.load_board->read_loads(rank, message);
  if (beside_ == Beside::lps) message = team_.load_board->read_leaving(team_.world, rank, message);
  Partition& first = *team_.partitions[0];
  for (std::size_t at = 0; at < message.size();) {
    Head head;
    std::memcpy(&head, message.data() + at, sizeof head);
    at += sizeof head;
    const std::size_t size = first.event_size(head.event) - sizeof(Event);
    Event* event = first.new_event(head.event.destination, head.event.type, message.data() + at, size);
    if (event == nullptr) throw std::bad_alloc();
    const unsigned thread = team_.world.owner[event->destination] - team_.world.first_partition;
    arrivals_[thread].push_back({head.time, head.tie, event});
    at += size;
  }
}

}  // namespace pdes
