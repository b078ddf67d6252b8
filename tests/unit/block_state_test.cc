#include "core/block_state.h"

#include <array>
#include <bit>

#include "support.h"

using namespace hm;

namespace {

struct alignas(8) Eight {
  std::array<BlockState, 8> states{};
  uint64_t word() const { return std::bit_cast<uint64_t>(*this); }
};
constexpr uint64_t kWhenTaken = kChecked ? BlockState::kCached : BlockState::kTaken;
constexpr uint64_t bit_of(size_t state) { return uint64_t{1} << 8 * state; }

}  // namespace

TEST(BlockState, EveryCombinationOfThreeValues) {
  for (int code = 0; code < 6561; ++code) {  // 3^8
    Eight eight;
    uint64_t free = 0;
    for (size_t k = 0, rest = static_cast<size_t>(code); k < 8; ++k, rest /= 3) {
      BlockState& state = eight.states[k];  // zero is FREE
      if (rest % 3 == 1) state.mark_taken();
      if (rest % 3 == 2) state.mark_cached();
      if (rest % 3 == 0) free |= bit_of(k);
      EXPECT_EQ(state.is_free(), rest % 3 == 0);
      EXPECT_EQ(state.is_cached(), rest % 3 == 2);
    }
    ASSERT_EQ(StateGroup(eight.states.data()).free_mask(), free) << code;
    ASSERT_EQ(StateGroup::count(free), static_cast<size_t>(std::popcount(free)));
    // Those that are taken change, and no others.
    uint64_t others = eight.word();
    for (size_t k = 0; k < 8; ++k)
      if ((free & bit_of(k)) != 0) StateGroup(eight.states.data()).take(k);
    ASSERT_EQ(eight.word(), others | free * kWhenTaken) << code;
  }
}

TEST(BlockState, AWordOfZerosIsAllFreeAndTakenAtOnce) {
  Eight eight;
  EXPECT_EQ(StateGroup(eight.states.data()).free_mask(), StateGroup::kOnes);
  StateGroup(eight.states.data()).take_all();
  EXPECT_EQ(eight.word(), StateGroup::kOnes * kWhenTaken);
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
  while ((group.free_mask() & bit_of(3)) == 0) std::this_thread::yield();
  group.take(3);
  EXPECT_EQ(payload, 42);
  payload = 43;
  holder.join();
}
