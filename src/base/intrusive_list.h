// Doubly linked lists through members of their items, or of a base of these; first: the front.  Guarded by their owner's
// lock.  The chain of next is complete after every instruction, so the child of a fork can walk any list that it finds.
#pragma once
#include "base/process.h"

namespace hm {

template <class T, class Owner>
void link_behind(T*& first, T* before, T& item, T* Owner::* next, T* Owner::* previous) noexcept {  // null: first
  T*& link = before != nullptr ? before->*next : first;
  item.*previous = before;
  item.*next = link;
  keep_order();
  link = &item;
  if (item.*next != nullptr) item.*next->*previous = &item;
}

template <class T, class Owner>
void link_first(T*& first, T& item, T* Owner::* next, T* Owner::* previous) noexcept {
  link_behind(first, static_cast<T*>(nullptr), item, next, previous);
}

template <class T, class Owner>
void unlink(T*& first, T& item, T* Owner::* next, T* Owner::* previous) noexcept {
  (item.*previous != nullptr ? item.*previous->*next : first) = item.*next;
  keep_order();
  if (item.*next != nullptr) item.*next->*previous = item.*previous;
}

}  // namespace hm
