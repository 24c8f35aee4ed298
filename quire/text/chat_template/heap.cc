#include "quire/text/chat_template/heap.h"

namespace quire::text::jinja {

void Heap::adopt(Object* object) {
  object->heap_ = this;
  object->next_ = first_;
  if (first_ != nullptr) first_->previous_ = object;
  first_ = object;
}

void Heap::collect(Object* object) {
  dying_.push_back(object);
  if (collecting_) return;  // reached from the loop below: a chain of any length needs no stack
  collecting_ = true;
  while (!dying_.empty()) {
    const std::unique_ptr<Object> dead(dying_.back());
    dying_.pop_back();
    if (dead->previous_ != nullptr) dead->previous_->next_ = dead->next_;
    if (dead->next_ != nullptr) dead->next_->previous_ = dead->previous_;
    if (first_ == dead.get()) first_ = dead->next_;
    meter_.release(static_cast<size_t>(dead->charged_bytes_));
    dead->clear();
  }
  collecting_ = false;
}

Heap::~Heap() {
  for (Object* object = first_; object != nullptr; object = object->next_) ++object->references_;
  // Every object is held now, so that clearing one frees no other.
  for (Object* object = first_; object != nullptr; object = object->next_) object->clear();
  while (first_ != nullptr) {
    const std::unique_ptr<Object> object(first_);
    first_ = object->next_;
  }
}

}  // namespace quire::text::jinja
