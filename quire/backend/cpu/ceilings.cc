#include "quire/backend/cpu/ceilings.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/backend/cpu/ceilings/limits.h"
#include "quire/base/cpu_count.h"

namespace quire::backend::cpu {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

struct Field {
  const char* name;
  double Ceilings::*value;
};

constexpr Field kFields[] = {
    {"read_gbs", &Ceilings::read_gbs},
    {"read_gbs_one_thread", &Ceilings::read_gbs_one_thread},
    {"l1_read_gbs", &Ceilings::l1_read_gbs},
    {"l2_read_gbs", &Ceilings::l2_read_gbs},
    {"l3_read_gbs", &Ceilings::l3_read_gbs},
    {"fp32_gflops", &Ceilings::fp32_gflops},
    {"bf16_gflops", &Ceilings::bf16_gflops},
    {"int8_gops", &Ceilings::int8_gops},
    {"fp32_gflops_one_thread", &Ceilings::fp32_gflops_one_thread},
    {"bf16_gflops_one_thread", &Ceilings::bf16_gflops_one_thread},
    {"int8_gops_one_thread", &Ceilings::int8_gops_one_thread},
    {"fork_join_us", &Ceilings::fork_join_us},
    {"barrier_us", &Ceilings::barrier_us},
};

/// "ceilings-amd-epyc-25-17-1-avx512-2t.json".
std::string file_name(const std::string& cpu, const std::string& level, int threads) {
  std::string slug;
  for (const char c : cpu) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  return fmt::format("ceilings-{}-{}-{}t.json", slug, level, threads);
}

std::optional<Ceilings> parse(const std::string& text) {
  json::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return std::nullopt;
  const json::object& object = value.get_object();
  Ceilings ceilings;
  for (const Field& field : kFields) {
    const json::value* entry = object.if_contains(field.name);
    if (entry == nullptr || !entry->is_number()) return std::nullopt;
    ceilings.*field.value = entry->to_number<double>();
  }
  const json::value* cpu = object.if_contains("cpu");
  const json::value* level = object.if_contains("level");
  const json::value* threads = object.if_contains("threads");
  if (cpu == nullptr || !cpu->is_string() || level == nullptr || !level->is_string() ||
      threads == nullptr || !threads->is_int64()) {
    return std::nullopt;
  }
  ceilings.cpu = cpu->get_string().c_str();
  ceilings.level = level->get_string().c_str();
  ceilings.threads = static_cast<int>(threads->get_int64());
  return ceilings;
}

int count_of(int threads) {
  return threads > 0 ? threads : default_thread_count();
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name;
  std::string family;
  std::string model;
  std::string stepping;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (key == "model name") name = value;
    if (key == "cpu family") family = value;
    if (key == "model") model = value;
    if (key == "stepping") stepping = value;
  }
  if (name.empty()) name = "unknown processor";
  return fmt::format("{} (family {}, model {}, stepping {})", name, family, model, stepping);
}

fs::path ceilings_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return fs::path(xdg) / "quire";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return {};
  return fs::path(home) / ".cache" / "quire";
}

std::optional<Ceilings> load_ceilings(int threads, Level level, const fs::path& folder) {
  const std::string cpu = processor_name();
  std::ifstream file(folder / file_name(cpu, level_name(level), count_of(threads)));
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  std::optional<Ceilings> ceilings = parse(text.str());
  if (!ceilings || ceilings->cpu != cpu || ceilings->threads != count_of(threads) ||
      ceilings->level != level_name(level)) {
    return std::nullopt;
  }
  return ceilings;
}

bool save_ceilings(const Ceilings& ceilings, const fs::path& folder) {
  if (folder.empty()) return false;
  json::object object{
      {"cpu", ceilings.cpu}, {"level", ceilings.level}, {"threads", ceilings.threads}};
  for (const Field& field : kFields) object[field.name] = ceilings.*field.value;
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path path = folder / file_name(ceilings.cpu, ceilings.level, ceilings.threads);
  const fs::path fresh = path.string() + ".new";
  std::ofstream file(fresh);
  file << json::serialize(object) << "\n";
  file.close();
  if (!file) return false;
  fs::rename(fresh, path, error);
  return !error;
}

Ceilings measure_ceilings(const CeilingsOptions& options) {
  LimitsOptions limits;
  limits.threads = options.threads;
  limits.levels = {options.level};
  limits.huge_pages = {true};
  limits.repetitions = options.repetitions;
  limits.on_progress = options.on_progress;
  return summarize(measure_limits(limits), options.level);
}

Ceilings known_ceilings(const CeilingsOptions& options) {
  if (auto known = load_ceilings(options.threads, options.level)) return *known;
  Ceilings measured = measure_ceilings(options);
  save_ceilings(measured);
  return measured;
}

}  // namespace quire::backend::cpu
