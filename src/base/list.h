// An intrusive doubly linked list whose head is one pointer.
//
// The elements carry their own hooks, so linking and unlinking allocate nothing and cost O(1) from
// any position. The list owns nothing. An element may be in as many lists as it has hooks.
#pragma once

#include <cassert>
#include <utility>

namespace lockd {

template <typename T>
struct ListHook {
  T* prev = nullptr;
  T* next = nullptr;  // null when in no list; the lists are circular

  bool linked() const { return next != nullptr; }
};

template <typename T, ListHook<T> T::*kHook>
class List {
 public:
  List() = default;
  List(List&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
  List& operator=(List&& other) noexcept {
    std::swap(first_, other.first_);
    return *this;
  }

  bool empty() const { return first_ == nullptr; }
  T* front() const { return first_; }
  T* back() const { return first_ == nullptr ? nullptr : (first_->*kHook).prev; }

  // The element behind `item`, or null at the end.
  T* next(const T* item) const {
    T* next = (item->*kHook).next;
    return next == first_ ? nullptr : next;
  }

  // The element before `item`, or null at the beginning.
  T* prev(const T* item) const { return item == first_ ? nullptr : (item->*kHook).prev; }

  void push_back(T* item) {
    if (first_ == nullptr) {
      assert(!(item->*kHook).linked());
      item->*kHook = {item, item};
      first_ = item;
    } else {
      link_before(item, first_);
    }
  }

  void push_front(T* item) {
    push_back(item);
    first_ = item;
  }

  void insert_before(T* item, T* successor) {
    link_before(item, successor);
    if (successor == first_) first_ = item;
  }

  void remove(T* item) {
    ListHook<T>& hook = item->*kHook;
    assert(hook.linked());
    if (hook.next == item) {
      assert(first_ == item);
      first_ = nullptr;
    } else {
      (hook.prev->*kHook).next = hook.next;
      (hook.next->*kHook).prev = hook.prev;
      if (first_ == item) first_ = hook.next;
    }
    hook = {};
  }

  T* pop_front() {
    T* item = first_;
    if (item != nullptr) remove(item);
    return item;
  }

 private:
  static void link_before(T* item, T* successor) {
    assert(!(item->*kHook).linked());
    T* prev = (successor->*kHook).prev;
    item->*kHook = {prev, successor};
    (prev->*kHook).next = item;
    (successor->*kHook).prev = item;
  }

  T* first_ = nullptr;
};

}  // namespace lockd
