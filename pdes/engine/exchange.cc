#include "engine/exchange.h"

#include <chrono>
#include <cstring>

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

void Exchange::begin(unsigned parity, ReducingBarrier::Reduction here) {
  pack(parity);
  ranks_.begin_exchange(outgoing_, {here.least, here.flags, team_.end()});
}

ReducingBarrier::Reduction Exchange::end(double& blocked_s) {
  auto began = std::chrono::steady_clock::now();
  Ranks::Vote all = ranks_.end_exchange();
  blocked_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (int rank = 0; rank < ranks_.count(); ++rank) unpack(ranks_.received(rank));
  team_.lower_end(all.end);
  return {all.least, all.flags};
}

void Exchange::pack(unsigned parity) {
  for (auto& message : outgoing_) message.clear();
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

void Exchange::unpack(std::span<const std::byte> message) {
  Partition& first = *team_.partitions[0];
  for (std::size_t at = 0; at < message.size();) {
    Head head;
    std::memcpy(&head, message.data() + at, sizeof head);
    std::size_t size = first.event_size(head.event);
    Event* event = first.memory.allocate(size);
    if (event == nullptr) ranks_.abort("out of memory for events of other ranks");
    event->destination = head.event.destination;
    event->type = head.event.type;
    std::memcpy(event->payload(), message.data() + at + sizeof head, size - sizeof(Event));
    unsigned thread = team_.world.owner[event->destination] - team_.world.first_partition;
    arrivals_[thread].push_back({head.time, head.tie, event});
    at += sizeof head + size - sizeof(Event);
  }
}

}  // namespace pdes
