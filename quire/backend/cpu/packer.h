// The packer: turns a weight's rows into the 16-panel layout that kernels read (packed_weight.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "quire/backend/cpu/kernels.h"
#include "quire/backend/packed_weight.h"
#include "quire/base/memory_ledger.h"

namespace quire::backend::cpu {

/// Calls fn(i) once for every i in [0, count), in any order, on any threads, and returns when all
/// are done.
using ParallelFor = std::function<void(int64_t count, const std::function<void(int64_t)>& fn)>;

/// Reads and packs a weight, a few panels a call of `parallel_for`'s function, each holding 16
/// unpacked rows at a time; then calls reader.done(). Throws LoadError where no kernel could
/// compute with the weight's shape.
std::shared_ptr<const PackedWeight> pack_weight(const WeightReader& reader, MemoryLedger* ledger,
                                                const ParallelFor& parallel_for);

/// The kernels' view of a packed weight; valid as long as the weight.
WeightArgs weight_args(const PackedWeight& weight);

/// The matmul that meets this weight with such activations; none for dense weights with activations
/// narrower than theirs (fp16 ones meet fp32 alone, as only these hold them exactly).
std::optional<MatmulKind> matmul_kind(const WeightSpec& spec, ActType activations);

}  // namespace quire::backend::cpu
