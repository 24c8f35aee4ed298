#include "quire/plan/alternatives.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::plan {
namespace {

int64_t context_of(const Plan& plan, const Wish& wish) {
  if (wish.context > 0) return wish.context;
  return plan.options.max_model_len.value_or(plan.model.config.max_position) > 0
             ? plan.options.max_model_len.value_or(plan.model.config.max_position)
             : 1;
}

PlannedModel copy_of(const PlannedModel& model) {
  return {.name = model.name,
          .config = model.config,
          .tensors = model.tensors,
          .window = model.window,
          .quantized_as = model.quantized_as,
          .notes = model.notes};
}

class Search {
 public:
  Search(const Plan& plan, const Wish& wish) : plan_(plan), wish_(wish), base_(plan.options) {
    // Who says how long sequences get leaves the context open, unless it is given.
    if (wish.context == 0 || base_.max_model_len.has_value()) return;
    base_.max_model_len = -1;
    suffix_ = " --max-model-len auto";
  }

  std::vector<Alternative> run() {
    try_types();
    try_step_size();
    try_context();
    try_formats();
    try_degrees();
    std::stable_sort(found_.begin(), found_.end(), [](const Alternative& a, const Alternative& b) {
      if (a.fits != b.fits) return a.fits;
      if (a.price != b.price) return a.price < b.price;
      if (a.devices != b.devices) return a.devices < b.devices;
      return a.sequences > b.sequences;
    });
    return std::move(found_);
  }

 private:
  void attempt(Alternative alternative, PlanOptions options) {
    std::optional<Plan> changed;
    try {
      changed.emplace(make_plan(copy_of(plan_.model), std::move(options)));
    } catch (const LoadError&) {
      return;  // a degree or a group that does not divide
    }
    alternative.change += suffix_;
    alternative.fits = satisfies(*changed, wish_);
    alternative.devices = static_cast<int32_t>(changed->ranks.size());
    alternative.rank_bytes = changed->fullest().fixed_bytes();
    alternative.max_model_len = changed->fits ? changed->max_model_len : 0;
    alternative.tokens_each = wish_.tokens_each > 0 ? wish_.tokens_each : changed->max_model_len;
    alternative.sequences = changed->fits ? changed->concurrency(alternative.tokens_each) : 0;
    found_.push_back(std::move(alternative));
  }

  void try_types() {
    if (plan_.kv_dtype == DType::kF32) {
      PlanOptions options = base_;
      options.record.kv_cache_dtype = "bfloat16";
      attempt({.change = "--kv-cache-dtype bfloat16",
               .cost = "keys and values rounded to 8 significant bits, as most servers keep them",
               .price = Price::kNothing},
              std::move(options));
    }
    const bool dense32 = plan_.options.record.format == nullptr &&
                         plan_.options.record.dtype == "auto" &&
                         plan_.model.config.dtype == DType::kF32;
    if (dense32 && plan_.options.device.kind == Device::Kind::kCpu) {
      PlanOptions options = base_;
      options.record.dtype = "bfloat16";
      attempt({.change = "--dtype bfloat16",
               .cost = "weights rounded to 8 significant bits",
               .price = Price::kNothing},
              std::move(options));
    }
  }

  void try_step_size() {
    for (const int64_t tokens : {1024, 512}) {
      if (plan_.options.record.max_tokens <= tokens) continue;
      PlanOptions options = base_;
      options.record.max_tokens = tokens;
      attempt({.change = fmt::format("--max-num-batched-tokens {}", tokens),
               .cost = "long prompts take more steps, each of which reads the weights anew",
               .price = Price::kStepSize},
              std::move(options));
    }
  }

  /// The longest that fits: only where nobody said how long it must be.
  void try_context() {
    if (plan_.options.max_model_len.has_value()) return;
    const size_t before = found_.size();
    Search longest(plan_, {.context = std::max<int64_t>(1, wish_.context),
                           .sequences = wish_.sequences,
                           .tokens_each = wish_.tokens_each});
    longest.attempt({.change = {}, .cost = {}, .price = Price::kContext}, longest.base_);
    std::move(longest.found_.begin(), longest.found_.end(), std::back_inserter(found_));
    if (found_.size() == before) return;
    Alternative& each = found_.back();
    if (each.max_model_len > 0) each.change = fmt::format("--max-model-len {}", each.max_model_len);
    each.cost = fmt::format("sequences of {} tokens at most, of the model's {}", each.max_model_len,
                            plan_.model.config.max_position);
  }

  void try_formats() {
    const double now =
        plan_.options.record.format != nullptr ? plan_.options.record.format->textbook_bits : 16;
    for (const WeightFormat& format : weight_formats()) {
      if (format.textbook_bits >= now || format.name == "awq-4" || format.name == "q4_1" ||
          format.name == "q4_0") {
        continue;
      }
      PlanOptions options = base_;
      options.record.format = &format;
      const bool eight = format.textbook_bits >= 6;
      attempt({.change = fmt::format("--quantization {}", format.name),
               .cost = fmt::format("{}; {}", format.about,
                                   eight ? "the model's answers hardly change"
                                         : "a small loss of quality, less with larger models"),
               .price = eight ? Price::kPrecision8 : Price::kPrecision4},
              std::move(options));
    }
  }

  void try_degrees() {
    const int32_t tp = plan_.options.record.tensor_parallel;
    const int32_t pp = plan_.options.record.pipeline_parallel;
    for (const int32_t degree : {2, 4, 8}) {
      if (degree <= tp) continue;
      PlanOptions options = base_;
      options.record.tensor_parallel = degree;
      attempt({.change = fmt::format("--tensor-parallel-size {}", degree),
               .cost = fmt::format("{} devices, two all-reduces a layer between them", degree * pp),
               .price = Price::kDevices},
              std::move(options));
      if (last_fits()) break;  // more devices would fit all the more
    }
    for (const int32_t degree : {2, 4, 8}) {
      if (degree <= pp) continue;
      PlanOptions options = base_;
      options.record.pipeline_parallel = degree;
      attempt(
          {.change = fmt::format("--pipeline-parallel-size {}", degree),
           .cost = fmt::format("{} devices; one sequence is no faster than on one", degree * tp),
           .price = Price::kDevices},
          std::move(options));
      if (last_fits()) break;
    }
  }

  bool last_fits() const { return !found_.empty() && found_.back().fits; }

  const Plan& plan_;
  const Wish wish_;
  PlanOptions base_;
  std::string suffix_;
  std::vector<Alternative> found_;
};

}  // namespace

bool satisfies(const Plan& plan, const Wish& wish) {
  if (!plan.fits || plan.max_model_len < context_of(plan, wish)) return false;
  const int64_t each = wish.tokens_each > 0 ? wish.tokens_each : plan.max_model_len;
  return plan.concurrency(each) >= static_cast<double>(wish.sequences);
}

std::vector<Alternative> find_alternatives(const Plan& plan, const Wish& wish) {
  return Search(plan, wish).run();
}

}  // namespace quire::plan
