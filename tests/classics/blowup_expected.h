// What each classic does with each pattern, and why.  The papers' claims were the first draft of this table; where an
// allocator behaves otherwise, the table says what it does.
#pragma once
#include <cstring>

namespace blowup {

enum Course { kSteady, kGrows };

struct Expected {
  const char* classic;  // up to its number or variant
  const char* pattern;
  Course course;
  double least, most;  // A/U at the end
  const char* why;
};

inline constexpr Expected kExpected[] = {
    {"one_lock", "hand-over", kSteady, 1, 2, "one heap: a free block serves the next request of its class"},
    {"one_lock", "hand-over-to-two", kSteady, 1, 2, "as above"},
    {"one_lock", "round-robin", kSteady, 1, 2, "as above: who frees does not matter"},
    {"one_lock", "phases", kSteady, 4, 14, "a block never changes its class: as many times the live memory as classes"},
    {"one_lock", "pins", kSteady, 1, 2, "a list of free blocks does not mind the ones that stay"},
    {"one_lock", "random", kSteady, 1, 3, "as above; classes are a factor of two apart"},
};

}  // namespace blowup
