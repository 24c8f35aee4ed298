// IndexList: a doubly linked list of the numbers 0..capacity-1, each in it at most once, with O(1)
// removal from the middle and no allocation after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "quire/base/check.h"

namespace quire::kv {

class IndexList {
 public:
  /// An empty list.
  explicit IndexList(int32_t capacity) : links_(static_cast<size_t>(capacity) + 1), end_(capacity) {
    at(end_) = {end_, end_};
  }

  bool empty() const { return size_ == 0; }
  int32_t size() const { return size_; }
  bool contains(int32_t index) const { return at(index).next != kOutside; }
  int32_t front() const { return at(end_).next; }
  int32_t back() const { return at(end_).prev; }
  /// The index after `index`, or end().
  int32_t next(int32_t index) const { return at(index).next; }
  /// The index before `index`, or end().
  int32_t prev(int32_t index) const { return at(index).prev; }
  int32_t end() const { return end_; }

  void push_front(int32_t index) { insert_before(at(end_).next, index); }
  void push_back(int32_t index) { insert_before(end_, index); }

  void remove(int32_t index) {
    QUIRE_CHECK(index != end_ && contains(index));
    const Link link = at(index);
    at(link.prev).next = link.next;
    at(link.next).prev = link.prev;
    at(index) = {};
    --size_;
  }

 private:
  static constexpr int32_t kOutside = -1;
  struct Link {
    int32_t prev = kOutside;
    int32_t next = kOutside;
  };

  Link& at(int32_t index) { return links_[static_cast<size_t>(index)]; }
  const Link& at(int32_t index) const { return links_[static_cast<size_t>(index)]; }

  void insert_before(int32_t place, int32_t index) {
    QUIRE_CHECK(index != end_ && !contains(index));
    const int32_t prev = at(place).prev;
    at(index) = {prev, place};
    at(prev).next = index;
    at(place).prev = index;
    ++size_;
  }

  std::vector<Link> links_;  // the last one is the sentinel
  int32_t end_;
  int32_t size_ = 0;
};

}  // namespace quire::kv
