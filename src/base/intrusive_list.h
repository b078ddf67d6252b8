// Doubly linked lists through members of what is in them; first: what is at the front.  Under the lock of their owner.
// The chain of next is whole at every instruction: who finds a list in the child of a fork can walk it.
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
