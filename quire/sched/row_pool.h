// RowPool: which row ids are free, reserved or held, and which were given up since the last plan.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "quire/base/check.h"
#include "quire/sched/batch_plan.h"

namespace quire::sched {

class RowPool {
 public:
  explicit RowPool(int32_t num_rows) : num_rows_(num_rows) {
    for (RowId row = num_rows - 1; row >= 0; --row) free_.push_back(row);
    given_up_.reserve(static_cast<size_t>(num_rows));
  }

  /// Rows that may still be reserved.
  int32_t num_available() const { return static_cast<int32_t>(free_.size()) - num_reserved_; }
  /// Rows held or reserved.
  int32_t num_taken() const { return num_rows_ - num_available(); }

  /// Sets `n` rows aside for later take() calls.
  void reserve(int32_t n) {
    QUIRE_CHECK(n <= num_available());
    num_reserved_ += n;
  }
  void unreserve(int32_t n) {
    QUIRE_CHECK(n <= num_reserved_);
    num_reserved_ -= n;
  }
  /// Turns one reserved row into a held one.
  RowId take() {
    unreserve(1);
    const RowId row = free_.back();
    free_.pop_back();
    return row;
  }
  void give_up(RowId row) {
    free_.push_back(row);
    given_up_.push_back(row);
  }
  /// Moves the rows given up since the last call behind those in `out`.
  void take_given_up(std::vector<RowId>& out) {
    out.insert(out.end(), given_up_.begin(), given_up_.end());
    given_up_.clear();
  }

 private:
  int32_t num_rows_;
  int32_t num_reserved_ = 0;
  std::vector<RowId> free_;
  std::vector<RowId> given_up_;
};

}  // namespace quire::sched
