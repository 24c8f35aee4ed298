// Heap: owns the objects of one rendering, counts their bytes, and frees them without recursion.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "quire/text/chat_template/datum.h"
#include "quire/text/chat_template/meter.h"

namespace quire::text::jinja {

class Heap {
 public:
  explicit Heap(Meter& meter) : meter_(meter) {}
  /// Frees what is left, cycles included.
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Makes a T; `extra_bytes` are what it holds beyond itself. Throws RenderError past the budget.
  template <typename T, typename... Args>
  Ref<T> make(size_t extra_bytes, Args&&... args) {
    meter_.allocate(sizeof(T) + extra_bytes);
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    object->charged_bytes_ = static_cast<int64_t>(sizeof(T) + extra_bytes);
    adopt(object.get());
    return Ref<T>(object.release());
  }
  /// Charges `bytes` more to `object`, which has grown.
  void grow(Object& object, size_t bytes) {
    meter_.allocate(bytes);
    object.charged_bytes_ += static_cast<int64_t>(bytes);
  }

 private:
  friend class Object;
  void adopt(Object* object);
  /// Frees `object` and whatever only it kept alive.
  void collect(Object* object);

  Meter& meter_;
  Object* first_ = nullptr;
  std::vector<Object*> dying_;
  bool collecting_ = false;
};

inline void Object::release() {
  if (heap_ != nullptr && --references_ == 0) heap_->collect(this);
}

}  // namespace quire::text::jinja
