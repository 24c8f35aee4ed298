// MemorySource: a TensorSource whose tensors were made by a test.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quire/checkpoint/tensor_source.h"

namespace quire::weights::testing {

class MemorySource final : public checkpoint::TensorSource {
 public:
  /// Adds or replaces a tensor.
  void add(const std::string& name, DType dtype, std::vector<int64_t> shape,
           std::vector<std::byte> bytes) {
    Entry& entry = entries_[name];
    entry.bytes = std::make_unique<std::vector<std::byte>>(std::move(bytes));
    entry.tensor = {.name = name,
                    .dtype = dtype,
                    .shape = std::move(shape),
                    .bytes = *entry.bytes,
                    .file = path_};
  }
  void add(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    add(name, DType::kF32, std::move(shape), std::move(bytes));
  }
  void remove(const std::string& name) { entries_.erase(name); }
  void set_interleaved(bool interleaved) { interleaved_ = interleaved; }
  /// Names of released tensors, in order.
  const std::vector<std::string>& released() const { return released_; }

  const checkpoint::StoredTensor* find(std::string_view name) const override {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second.tensor;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }
  bool rope_rows_interleaved() const override { return interleaved_; }
  void release(const checkpoint::StoredTensor& tensor) const override {
    released_.push_back(tensor.name);
  }
  const std::string& path() const override { return path_; }

 private:
  struct Entry {
    std::unique_ptr<std::vector<std::byte>> bytes;
    checkpoint::StoredTensor tensor;
  };
  std::map<std::string, Entry, std::less<>> entries_;
  mutable std::vector<std::string> released_;
  std::string path_ = "memory";
  bool interleaved_ = false;
};

}  // namespace quire::weights::testing
