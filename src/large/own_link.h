// How a large block belongs to a heap of the program's own (threads/own_heaps.h): in a list through its descriptor, under the
// heap's lock.  Of a block that belongs to none, heap is null; only that is looked at then.
#pragma once

namespace hm {

struct OwnHeap;

template <class Descriptor>
struct OwnLink {  // NOLINT(bugprone-crtp-constructor-accessibility): nothing else is there to be kept private
  OwnHeap* heap = nullptr;
  Descriptor* next_own = nullptr;
  Descriptor* previous_own = nullptr;
};

}  // namespace hm
