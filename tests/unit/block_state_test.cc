#include "core/block_state.h"

#include <array>

#include "support.h"

using namespace hm;

namespace {
struct alignas(8) Eight {
  std::array<BlockState, 8> states{};
  uint64_t word() const {
    uint64_t w;
    memcpy(&w, states.data(), 8);
    return w;
  }
};
}  // namespace

TEST(BlockState, ZeroIsFree) {
  Eight eight;
  EXPECT_TRUE(eight.states[0].is_free());
  EXPECT_EQ(StateGroup(eight.states.data()).free_mask(), StateGroup::kOnes);
}

TEST(BlockState, EveryCombinationOfThreeValues) {
  for (int code = 0; code < 6561; ++code) {  // 3^8
    Eight eight;
    uint64_t expected = 0;
    for (int k = 0, rest = code; k < 8; ++k, rest /= 3) {
      BlockState& state = eight.states[static_cast<size_t>(k)];
      if (rest % 3 == 1) state.mark_taken();
      if (rest % 3 == 2) state.mark_cached();
      if (rest % 3 == 0) expected |= uint64_t{1} << 8 * k;
      EXPECT_EQ(state.is_free(), rest % 3 == 0);
      EXPECT_EQ(state.is_cached(), rest % 3 == 2);
    }
    StateGroup group(eight.states.data());
    ASSERT_EQ(group.free_mask(), expected) << code;
    ASSERT_EQ(StateGroup::count(expected), static_cast<size_t>(std::popcount(expected)));
  }
}

TEST(BlockState, TakeLeavesTheOthersAlone) {
  for (uint64_t bits = 0; bits < 256; ++bits) {
    Eight eight;
    uint64_t mask = 0;
    for (size_t k = 0; k < 8; ++k) {
      if ((bits >> k & 1) != 0) mask |= uint64_t{1} << 8 * k;
      else eight.states[k].mark_taken();
    }
    uint64_t others = eight.word();
    StateGroup(eight.states.data()).take(mask);
    uint64_t value = kChecked ? BlockState::kCached : BlockState::kTaken;
    ASSERT_EQ(eight.word(), others | mask * value);
  }
}

TEST(BlockState, GiveBackOrdersTheHoldersWorkBeforeTheNextOwners) {
  // ThreadSanitizer reports `payload` if the release or the acquire is missing.
  Eight eight;
  eight.states[3].mark_taken();
  long payload = 0;
  std::thread holder([&] {
    payload = 42;
    eight.states[3].give_back();
  });
  StateGroup group(eight.states.data());
  uint64_t mask;
  while (((mask = group.free_mask()) & uint64_t{1} << 24) == 0) std::this_thread::yield();
  group.take(mask);
  EXPECT_EQ(payload, 42);
  payload = 43;
  holder.join();
}
