// What each baseline does with each pattern, and why.  The papers' claims were the first draft of this table; where an
// allocator behaves otherwise, the table says what it does.
#pragma once

namespace blowup {

enum Course { kSteady, kGrows };

struct Expected {
  const char* baseline;  // its name, or how it begins: the longest line counts
  const char* pattern;
  Course course;
  double least, most;  // A/U at the end
  const char* why;
};

// U is 2 MB; P, the heaps and arenas, 16.
inline constexpr Expected kExpected[] = {
    {"one_lock", "hand_over", kSteady, 1, 2, "one heap: a free block serves the next request of its class"},
    {"one_lock", "round_robin", kSteady, 1, 2, "the same: who frees does not matter, nor how many"},
    {"one_lock", "phases", kSteady, 4, 14, "a block never leaves its class: U for each class, of which there are 12"},
    {"one_lock", "pins", kSteady, 1, 2, "a list of free blocks does not mind the ones that stay"},
    {"one_lock", "random", kSteady, 1, 3, "classes are a factor of two apart"},

    // No bound: "at most N*M" (section 3) counts neither classes nor what the Index rule gives up.
    {"hmalloc_paper", "hand_over", kSteady, 1, 3, "blocks go back to their superblock; the least is one of 4 MB"},
    {"hmalloc_paper", "round_robin", kSteady, 16, 40, "N*M, with N = 16: each heap keeps its peak, there is no global one"},
    {"hmalloc_paper", "phases", kGrows, 60, 200, "no superblock leaves its class or its heap: M is for each class"},
    {"hmalloc_paper", "pins", kGrows, 60, 200, "the Index rule: one block that stays ends the reuse of its superblock"},
    {"hmalloc_paper", "random", kSteady, 20, 90, "superblocks of 64 KB and 4 MB for each of 17 classes in 16 heaps"},

    // Bounded by O(U + P), theorem 1: here b*U/(1-f), and for each heap K superblocks and one of each class.
    {"hoard", "hand_over", kSteady, 1, 2, "a heap that frees get empty gives to the global heap, which serves all"},
    {"hoard", "round_robin", kSteady, 1, 2, "the same: 16 times K*S is a quarter of U"},
    {"hoard", "phases", kSteady, 1, 2, "empty superblocks are recycled for any class"},
    {"hoard", "pins", kSteady, 1, 2, "one that is nearly empty serves again, from whichever heap"},
    {"hoard", "random", kSteady, 1, 4, "of 23 classes each of 16 heaps has superblocks that are not full: f allows it"},

    // One heap; adjacent free blocks are one.
    {"vvmalloc-1", "hand_over", kSteady, 1, 2, "one heap, where free neighbours become one block"},
    {"vvmalloc-1", "round_robin", kSteady, 1, 2, "the same"},
    {"vvmalloc-1", "phases", kSteady, 1, 3, "a block of any size serves any other"},
    {"vvmalloc-1", "pins", kSteady, 1, 2, "only the neighbours of those that stay cannot become one"},
    {"vvmalloc-1", "random", kSteady, 1, 2, "the same"},

    // No bound: approaches 2 to 4 are private heaps, of which only whole arenas find a way out.
    {"vvmalloc", "hand_over", kGrows, 40, 100, "a block is the freeing thread's, which hoards what others cut"},
    {"vvmalloc", "round_robin", kSteady, 1, 2, "who freed last allocates next: its own list serves it"},
    {"vvmalloc", "phases", kSteady, 1, 5, "a thread that frees what it allocated makes whole arenas, for everyone"},
    {"vvmalloc", "pins", kSteady, 1, 2, "one thread by itself: as one heap"},
    {"vvmalloc", "random", kSteady, 2, 6, "each of 16 lists keeps what its thread freed, until it allocates again"},

    // P times U: an arena keeps its peak.  Steady in time, but no bound that holds for any number of arenas.
    {"ar_malloc", "hand_over", kSteady, 1, 2, "a full cache sends blocks back to the slabs of their arena"},
    {"ar_malloc", "round_robin", kSteady, 16, 22, "each of 16 arenas keeps its peak: 16 times U"},
    {"ar_malloc", "phases", kGrows, 16, 25, "with each arena that has its turn, to P times U"},
    {"ar_malloc", "pins", kSteady, 1, 2, "a slab takes what is freed around the ones that stay"},
    {"ar_malloc", "random", kSteady, 6, 16, "16 arenas, each with slabs for 20 classes, most of them not full"},

    {"ar_malloc-lock", "hand_over", kSteady, 1, 2, "one arena behind one lock"},
    {"ar_malloc-lock", "round_robin", kSteady, 1, 2, "the same"},
    {"ar_malloc-lock", "phases", kSteady, 1, 3, "an empty slab may change its class"},
    {"ar_malloc-lock", "pins", kSteady, 1, 2, "a slab takes what is freed around the ones that stay"},
    {"ar_malloc-lock", "random", kSteady, 1, 4, "slabs for 20 classes, most of them not full"},
};

}  // namespace blowup
