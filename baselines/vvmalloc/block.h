// Blocks and their boundary tags (Knuth; the 213 malloc lab), and arenas (Approach 2).
//
//        ┌────────┬──────────────────────────────┬────────┐
//        │ header │ payload, 16-byte aligned      │ footer │      a block: both tags say the same
//        └────────┴──────────────────────────────┴────────┘
//        ┌──────────┬─────────┬─────────┬─ ─ ─ ─┬──────────┐
//        │ prologue │ block   │ block   │       │ epilogue │     an arena: its edges look like used blocks
//        └──────────┴─────────┴─────────┴─ ─ ─ ─┴──────────┘
//
// T1  A block's size leads to its right neighbour, the footer on its left to its left neighbour.
// T2  An arena has one owner: a list, whose number is in the tags of all its blocks.  Only the thread that has this
//     list writes tags there, and only it reads a neighbour's.  So tags need no atomics.
// T3  A block that another thread has freed keeps its tags: they say used, and the owner leaves it alone.  But a thread
//     that has a block that is alone in its arena has the arena.
// T4  From Approach 2 on an edge, once written, never changes.  So the owner on one side of it may read it whoever has
//     the arena on its other side.
#pragma once
#include <cstring>

#include "base/sizes.h"

namespace hm::vvmalloc {

enum class State : uint64_t {
  kFree = 0,
  kUsed = 1,
  kPrologue = 2,
  kEpilogue = 3,
  kWhole = 4,  // used, alone in its arena: for a request that fits no common arena
  kLead = 5,   // the gap in front of such a block that aligns it
};

enum class ListId : uint16_t {};
inline constexpr ListId kNobody{0};  // of free memory in the central queue
inline constexpr ListId kFirstList{1};

class Tag {
 public:
  constexpr Tag() = default;
  constexpr Tag(State state, size_t size, ListId owner)
      : word_(uint64_t{static_cast<uint16_t>(owner)} << kOwnerShift | size | static_cast<uint64_t>(state)) {}

  State state() const noexcept { return static_cast<State>(word_ & (kGranule - 1)); }
  size_t size() const noexcept { return word_ & kSizes; }
  ListId owner() const noexcept { return static_cast<ListId>(word_ >> kOwnerShift); }
  bool operator==(const Tag&) const = default;

 private:
  static constexpr int kOwnerShift = 48;
  static constexpr uint64_t kSizes = (uint64_t{1} << kOwnerShift) - kGranule;  // multiples of 16
  uint64_t word_ = 0;
};

inline constexpr size_t kTags = 2 * sizeof(Tag);
inline constexpr size_t kEdge = kTags;                     // a prologue or an epilogue: two tags, no payload
inline constexpr size_t kMin = kTags + 2 * sizeof(void*);  // a free block's payload has its links
inline constexpr size_t kMax = size_t{1} << 46;            // of a request

// The block that a request needs.
constexpr size_t block_size(size_t request) { return request + kTags < kMin ? kMin : align_up(request + kTags, kGranule); }

// The start of a block.  The links exist only in a free block, and belong to the list that it is in.
class Block {
 public:
  Tag header;
  Block* next;
  Block* prev;

  static Block* of(void* payload) noexcept { return reinterpret_cast<Block*>(static_cast<char*>(payload) - sizeof(Tag)); }
  static const Block* of(const void* payload) noexcept {
    return reinterpret_cast<const Block*>(static_cast<const char*>(payload) - sizeof(Tag));
  }
  static Block* at(char* start) noexcept { return reinterpret_cast<Block*>(start); }

  void* payload() noexcept { return start() + sizeof(Tag); }
  size_t size() const noexcept { return header.size(); }
  size_t capacity() const noexcept { return size() - kTags; }
  char* start() noexcept { return reinterpret_cast<char*>(this); }
  char* end() noexcept { return start() + size(); }
  const Tag& footer() const noexcept {
    return *reinterpret_cast<const Tag*>(reinterpret_cast<const char*>(this) + size() - sizeof(Tag));
  }

  void set(State state, size_t size, ListId owner) noexcept {
    header = Tag(state, size, owner);
    const_cast<Tag&>(footer()) = header;
  }

  // T1.  The neighbours' tags: for the owner.
  Block* right() noexcept { return at(end()); }
  Tag left_footer() noexcept { return *reinterpret_cast<Tag*>(start() - sizeof(Tag)); }
  Block* left() noexcept { return at(start() - left_footer().size()); }
};
static_assert(sizeof(Block) == kMin - sizeof(Tag));

// Memory between a prologue and an epilogue.  Starts 8 bytes off a multiple of 16, as blocks do.
struct Arena {
  char* start = nullptr;
  size_t bytes = 0;  // edges included

  static constexpr size_t kOverhead = 2 * kEdge;
  explicit operator bool() const { return start != nullptr; }
  Block* inside() const noexcept { return Block::at(start + kEdge); }
  void write_prologue() const noexcept { Block::at(start)->set(State::kPrologue, kEdge, kNobody); }
  void write_epilogue() const noexcept { Block::at(start + bytes - kEdge)->set(State::kEpilogue, kEdge, kNobody); }
  // Makes one free block from edge to edge.
  Block* fill(ListId owner) const noexcept {
    inside()->set(State::kFree, bytes - kOverhead, owner);
    return inside();
  }
};

}  // namespace hm::vvmalloc
