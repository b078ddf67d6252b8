// Doubly linked lists through members of their items; first: the front.  Guarded by their owner's lock.  The chain of
// next is complete after every instruction, so the child of a fork can walk any list that it finds.
#pragma once
#include "base/process.h"

namespace hm {

template <class T>
void link_behind(T*& first, T* before, T& item, T* T::* next, T* T::* previous) noexcept {  // null: first
  T*& link = before != nullptr ? before->*next : first;
  item.*previous = before;
  item.*next = link;
  keep_order();
  link = &item;
  if (item.*next != nullptr) item.*next->*previous = &item;
}

template <class T>
void link_first(T*& first, T& item, T* T::* next, T* T::* previous) noexcept {
  link_behind(first, static_cast<T*>(nullptr), item, next, previous);
}

template <class T>
void unlink(T*& first, T& item, T* T::* next, T* T::* previous) noexcept {
  (item.*previous != nullptr ? item.*previous->*next : first) = item.*next;
  keep_order();
  if (item.*next != nullptr) item.*next->*previous = item.*previous;
}

}  // namespace hm
