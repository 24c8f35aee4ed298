#include "quire/plan/device.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/error.h"

namespace quire::plan {
namespace {

namespace json = boost::json;

constexpr double kMib = 1024.0 * 1024.0;

/// Reads one object's members; `where` is "devices.json: H100.link".
class Fields {
 public:
  Fields(const json::object& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  bool has(std::string_view key) const { return object_.contains(key); }
  double number(std::string_view key, double fallback) const {
    return has(key) ? number(key) : fallback;
  }
  double number(std::string_view key) const {
    const json::value& value = at(key);
    if (!value.is_number()) fail(key, "a number");
    const auto number = value.to_number<double>();
    if (!(number >= 0 && number < 1e15)) fail(key, "a number of at least 0");
    return number;
  }
  std::string string(std::string_view key) const {
    const json::value& value = at(key);
    if (!value.is_string()) fail(key, "a string");
    return std::string(value.as_string());
  }
  std::vector<std::string> strings(std::string_view key) const {
    std::vector<std::string> result;
    if (!has(key)) return result;
    for (const json::value& value : array(key)) {
      if (!value.is_string()) fail(key, "a list of strings");
      result.emplace_back(value.as_string());
    }
    return result;
  }
  const json::array& array(std::string_view key) const {
    const json::value& value = at(key);
    if (!value.is_array()) fail(key, "a list");
    return value.as_array();
  }
  Fields object(std::string_view key) const { return of(at(key), key); }
  Fields of(const json::value& value, std::string_view key) const {
    if (!value.is_object()) fail(key, "an object");
    return {value.as_object(), fmt::format("{}.{}", where_, key)};
  }
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const {
    throw LoadError(where_, key, expected, has(key) ? "another value" : "no such key");
  }

 private:
  const json::value& at(std::string_view key) const {
    const json::value* value = object_.if_contains(key);
    if (value == nullptr) fail(key, "a value");
    return *value;
  }

  const json::object& object_;
  std::string where_;
};

Link read_link(const Fields& fields, std::string_view key) {
  if (!fields.has(key)) return {};
  const Fields link = fields.object(key);
  return {.name = link.string("name"),
          .bytes_per_second = link.number("gb_per_s") * 1e9,
          .latency_seconds = link.number("latency_us", 10) * 1e-6};
}

/// Two numbers between 0 and 1, the first the smaller.
Reach read_reach(const Fields& fields, std::string_view key, Reach fallback) {
  if (!fields.has(key)) return fallback;
  const Fields reach = fields.object(key);
  const Reach result{reach.number("low"), reach.number("high")};
  if (!(result.low > 0 && result.low <= result.high)) fields.fail(key, "0 < low <= high");
  return result;
}

Device read_device(const Fields& fields) {
  Device device;
  device.name = fields.string("name");
  device.aliases = fields.strings("aliases");
  const std::string kind = fields.string("kind");
  if (kind != "cpu" && kind != "gpu") fields.fail("kind", "cpu or gpu");
  const bool gpu = kind == "gpu";
  device.kind = gpu ? Device::Kind::kGpu : Device::Kind::kCpu;
  device.memory_bytes = static_cast<int64_t>(fields.number("memory_mib") * kMib);
  device.workers = static_cast<int32_t>(std::clamp(fields.number("workers"), 1.0, 65536.0));
  const Fields peak = fields.object("peak_tops");
  device.peak_fp32 = peak.number("fp32") * 1e12;
  device.peak_bf16 = peak.number("bf16", peak.number("fp32")) * 1e12;
  device.peak_int8 = peak.number("int8", peak.number("bf16", peak.number("fp32"))) * 1e12;
  for (const json::value& value : fields.array("levels")) {
    const Fields level = fields.of(value, "levels");
    device.levels.push_back({.name = level.string("name"),
                             .bytes = static_cast<int64_t>(level.number("mib", 0) * kMib),
                             .bytes_per_second = level.number("gb_per_s", 0) * 1e9});
  }
  if (!device.has_ceilings()) fields.fail("levels", "a last one with gb_per_s");
  device.link = read_link(fields, "link");
  device.host = read_link(fields, "host");
  device.compute = read_reach(fields, "compute", gpu ? Reach{0.4, 0.75} : Reach{0.45, 0.65});
  device.bandwidth = read_reach(fields, "bandwidth", gpu ? Reach{0.6, 0.9} : Reach{0.7, 0.95});
  device.overlap = gpu ? 1 : kCpuOverlap;
  if (!gpu) device.input_seconds = kCpuInputCoreSeconds / device.workers;
  device.operation_seconds = fields.number("operation_us", gpu ? 2 : 3) * 1e-6;
  device.sources = fields.strings("sources");
  return device;
}

/// Lower case, without spaces and dashes.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' || c == '-' || c == '_') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

}  // namespace

double Device::peak(backend::ActType act) const {
  switch (act) {
    case backend::ActType::kI8:
      return peak_int8;
    case backend::ActType::kBF16:
      return peak_bf16;
    case backend::ActType::kF32:
      break;
  }
  return peak_fp32;
}

double Device::ridge(backend::ActType act) const {
  return memory_bandwidth() > 0 ? peak(act) / memory_bandwidth() : 0.0;
}

std::vector<Device> parse_devices(std::string_view text, const std::string& where) {
  json::error_code error;
  const json::value root = json::parse(text, error);
  if (error || !root.is_object()) {
    throw LoadError(where, "", "a JSON object", error ? error.message() : "another value");
  }
  const Fields fields(root.as_object(), where);
  std::vector<Device> devices;
  for (const json::value& value : fields.array("devices")) {
    devices.push_back(read_device(fields.of(value, "devices")));
  }
  if (devices.empty()) fields.fail("devices", "at least one device");
  return devices;
}

std::vector<Device> built_in_devices() {
  return parse_devices(devices_json(), "devices.json");
}

const Device& find_device(const std::vector<Device>& devices, std::string_view name) {
  const std::string wanted = plain(name);
  std::string known;
  for (const Device& device : devices) {
    const auto is = [&wanted](const std::string& each) { return plain(each) == wanted; };
    if (is(device.name) || std::any_of(device.aliases.begin(), device.aliases.end(), is)) {
      return device;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", device.name);
  }
  throw LoadError("--device", "", fmt::format("this, or one of {}", known), name);
}

}  // namespace quire::plan
