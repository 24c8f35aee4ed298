#include "quire/llm/numbers_key.h"

#include <gnu/libc-version.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/cpu/levels.h"
#include "quire/base/mapped_file.h"

namespace quire::llm {
namespace {

namespace fs = std::filesystem;

/// The file itself, or a folder's weights and configuration, in the order of their names.
std::vector<fs::path> files_of(const std::string& source) {
  if (!fs::is_directory(source)) return {source};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
    const bool weights = entry.path().extension() == ".safetensors";
    if (entry.is_regular_file() && (weights || entry.path().filename() == "config.json")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_hash(const std::string& source) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const fs::path& path : files_of(source)) {
    const MappedFile file(path.string());
    const std::string label = fmt::format("{} {}\n", path.filename().string(), file.bytes().size());
    if (fs::is_directory(source)) XXH3_128bits_update(state.get(), label.data(), label.size());
    XXH3_128bits_update(state.get(), file.bytes().data(), file.bytes().size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string numbers_key(const Options& options, const checkpoint::Checkpoint& checkpoint,
                        const ModelPlan& plan) {
  std::string key = fmt::format(
      "model {} dtype {} activations {} block {} level {} quire {} numbers {} compiler {} libc {}",
      content_hash(checkpoint.source_path), options.dtype, options.activation_dtype,
      options.block_size, backend::cpu::level_name(backend::cpu::chosen_level()), QUIRE_VERSION,
      backend::cpu::kNumbersVersion, __VERSION__, gnu_get_libc_version());
  for (const backend::CacheGroupSpec& group : plan.cache_groups) {
    key += fmt::format(" group {}x{}x{} {} window {}", group.num_layers, group.num_kv_heads,
                       group.head_dim, dtype_info(group.dtype).name, group.window);
  }
  return key;
}

}  // namespace quire::llm
