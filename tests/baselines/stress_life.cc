#include "stress_life.h"

#include <pthread.h>

namespace stress {

std::atomic<bool> done{false};

void Life::drop(Block*& block) {
  if (block != nullptr) release(block);
  block = nullptr;
}

void Life::hand_over(Block*& block) {
  block = table.exchange(random_(), block);
  if (block != nullptr) check(block);
}

namespace {

// Few, so that superblocks run out of blocks and those that others freed come again.
constexpr size_t kParcelSizes[] = {40, 250, 3000, 12000};

struct Parcel {
  size_t count;
  std::array<Block*, 300> blocks;
};
// A receiver acquires and does not release: the program orders nothing the other way.
std::atomic<Parcel*> lanes[3]{};

void open_parcel(Parcel* parcel) {
  if (parcel == nullptr) return;
  for (size_t i = 0; i < parcel->count; ++i) release(parcel->blocks[i]);
  hm::deallocate(parcel, "stress");
}

}  // namespace

void empty_parcels() {
  for (auto& lane : lanes) open_parcel(lane.exchange(nullptr));
}

void Life::send_parcel(size_t size) {
  auto* parcel = static_cast<Parcel*>(hm::allocate(sizeof(Parcel)));
  if (parcel == nullptr) fail("no memory");
  parcel->count = size > 10000 ? 120 : parcel->blocks.size();
  for (size_t i = 0; i < parcel->count; ++i) parcel->blocks[i] = allocate(size, number_, random_);
  Parcel* none = nullptr;
  auto& lane = lanes[random_() % 3];
  if (!lane.compare_exchange_strong(none, parcel, std::memory_order_release, std::memory_order_relaxed)) open_parcel(parcel);
}

void Life::receive_parcel() { open_parcel(lanes[random_() % 3].exchange(nullptr, std::memory_order_acquire)); }

// Many blocks of one size at once, freed in their order: caches overflow, superblocks and arenas run empty.
void Life::burst() {
  std::array<Block*, 300> burst;
  size_t size = random_size(random_), count = size > 16384 ? 4 : random_() % burst.size();
  for (size_t i = 0; i < count; ++i) burst[i] = allocate(size, number_, random_);
  for (size_t i = 0; i < count; ++i) {
    if (random_.one_in(8)) hand_over(burst[i]);
    drop(burst[i]);
  }
}

void Life::step() {
  Block*& mine = held_[random_() % held_.size()];
  uint64_t dice = random_() % 64;
  if (dice < 14) return hand_over(mine);
  if (dice < 34) return drop(mine);
  if (dice == 63) return burst();
  if (dice == 62) return random_.one_in(2) ? send_parcel(kParcelSizes[random_() % 4]) : receive_parcel();
  if (mine == nullptr) mine = fresh();
  else if (dice < 40) mine = resize(mine, random_size(random_), number_);
  else check(mine);
}

void Life::leave() {
  for (Block*& mine : held_) {
    if (!random_.one_in(4)) hand_over(mine);
    drop(mine);
  }
}

namespace {

pthread_key_t keys[2];

void be_late(Lateness which, uint64_t rounds) {
  Random random(seed + rounds);
  auto* block = static_cast<uint64_t*>(hm::allocate(100));
  *block = rounds;
  pthread_setspecific(keys[which], block);
}

void late(Lateness which, void* pointer) {
  auto* block = static_cast<uint64_t*>(pointer);
  uint64_t rounds = *block;
  Random random(reinterpret_cast<uintptr_t>(block));
  hm::deallocate(block, "stress");
  Block* other = allocate(random_size(random), 0, random);
  other = table.exchange(random(), resize(other, random_size(random), 0));
  if (other != nullptr) release(other);
  if (rounds > 0) be_late(which, rounds - 1);
}

}  // namespace

void make_key(Lateness which) {
  auto destructor =
      which == kEarlyKey ? [](void* block) { late(kEarlyKey, block); } : [](void* block) { late(kLateKey, block); };
  if (pthread_key_create(&keys[which], destructor) != 0) fail("no key");
}

void live(uint32_t number) {
  if (number % 3 == 0) be_late(number % 2 == 0 ? kEarlyKey : kLateKey, 2);
  Life life(number);
  uint64_t length = life.length(), kind = number % 4;
  size_t size = kParcelSizes[number / 4 % 4];
  for (uint64_t i = 0; i < length && !done.load(std::memory_order_relaxed); ++i) {
    if (kind == 1 && i < length / 16) life.send_parcel(size);
    else if (kind == 2) life.receive_parcel();
    else if (kind != 1) life.step();
    if (kind == 3 && i % 1024 == 0 && hm::usage().mapped == 0) fail("nothing is mapped");
  }
  life.leave();
}

}  // namespace stress
