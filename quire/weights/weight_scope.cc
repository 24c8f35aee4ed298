#include "quire/weights/weight_scope.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quire/base/error.h"
#include "quire/weights/dense.h"
#include "quire/weights/weight_format.h"

namespace quire::weights {
namespace {

bool is_plain_float(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

/// What all scopes of one load share.
struct WeightScope::Load {
  const checkpoint::TensorSource* tensors;
  backend::Backend* backend;
  LoadOptions options;
  backend::Progress progress;
  std::set<std::string, std::less<>> read;
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;

  void count(const checkpoint::StoredTensor& tensor) {
    if (!read.insert(tensor.name).second) return;
    bytes_done += static_cast<int64_t>(tensor.bytes.size());
    if (progress) progress(bytes_done, bytes_total);
  }
};

WeightScope::WeightScope(const checkpoint::TensorSource& tensors, backend::Backend& backend,
                         const LoadOptions& options, backend::Progress progress)
    : load_(std::make_shared<Load>()) {
  load_->tensors = &tensors;
  load_->backend = &backend;
  load_->options = options;
  load_->progress = std::move(progress);
  for (const std::string& name : tensors.names()) {
    load_->bytes_total += static_cast<int64_t>(tensors.find(name)->bytes.size());
  }
}

WeightScope WeightScope::child(std::string_view name) const {
  WeightScope scope = *this;
  scope.path_ = full_name(name);
  return scope;
}

std::string_view WeightScope::name() const {
  const size_t dot = path_.rfind('.');
  return dot == std::string::npos ? std::string_view(path_)
                                  : std::string_view(path_).substr(dot + 1);
}

std::string WeightScope::full_name(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

bool WeightScope::has(std::string_view name) const {
  return load_->tensors->find(full_name(name)) != nullptr;
}

const checkpoint::StoredTensor& WeightScope::find(std::string_view name,
                                                  std::span<const int64_t> shape) const {
  const std::string full = full_name(name);
  const checkpoint::StoredTensor* tensor = load_->tensors->provide(full, shape);
  if (tensor == nullptr) {
    throw LoadError(load_->tensors->path(), full, "a tensor of this name", "none");
  }
  return *tensor;
}

std::shared_ptr<const backend::PackedWeight> WeightScope::weight(int64_t out, int64_t in,
                                                                 RowOrder order) const {
  const std::vector<int64_t> expected = {out, in};
  const checkpoint::StoredTensor& tensor = find("weight", expected);
  if (tensor.shape != expected) {
    throw LoadError(tensor.file, tensor.name, "shape " + shape_text(expected),
                    shape_text(tensor.shape));
  }
  const auto reader = make_weight_reader(tensor, load_->options.dtype, order, load_->tensors);
  auto packed = load_->backend->pack(*reader);
  load_->count(tensor);
  return packed;
}

std::vector<float> WeightScope::vector(std::string_view name, int64_t size, RowOrder order) const {
  const std::vector<int64_t> expected = {size};
  const checkpoint::StoredTensor& tensor = find(name, expected);
  if (tensor.shape != expected) {
    throw LoadError(tensor.file, tensor.name, fmt::format("shape [{}]", size),
                    shape_text(tensor.shape));
  }
  if (!is_plain_float(tensor.dtype)) {
    throw LoadError(tensor.file, tensor.name, "F32, F16 or BF16", dtype_name(tensor.dtype));
  }
  std::vector<float> stored(static_cast<size_t>(size));
  load_floats(tensor.bytes.data(), tensor.dtype, size, stored.data());
  std::vector<float> values(stored.size());
  for (int64_t i = 0; i < size; ++i) {
    values[static_cast<size_t>(i)] = stored[static_cast<size_t>(order.stored_row(i))];
  }
  load_->count(tensor);
  return values;
}

std::vector<float> WeightScope::optional_vector(std::string_view name, int64_t size,
                                                RowOrder order) const {
  return has(name) ? vector(name, size, order) : std::vector<float>();
}

void WeightScope::skip(std::string_view name) const {
  load_->count(find(name, {}));
}

RowOrder WeightScope::rope_rows(int64_t head_dim) const {
  return {.interleaved_head_dim = load_->tensors->rope_rows_interleaved() ? head_dim : 0};
}

backend::ActType WeightScope::activation(const backend::WeightSpec& spec) const {
  return activation_for(spec, load_->options.activation,
                        load_->backend->preferred_activation(spec));
}

std::vector<std::string> WeightScope::unread() const {
  std::vector<std::string> names;
  for (std::string& name : load_->tensors->names()) {
    if (load_->read.contains(name) || ends_with(name, "rotary_emb.inv_freq") ||
        name == "rope_freqs.weight") {
      continue;
    }
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace quire::weights
