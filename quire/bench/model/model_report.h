// ModelReport: ModelBenchResults as tables for people, and as JSON.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

#include "quire/bench/model/model_bench.h"

namespace quire::bench {

/// One model's rates and, when they were asked for, its operations' times.
std::string format_model(const ModelBenchResult& result, bool markdown);
boost::json::object model_json(const ModelBenchResult& result);

}  // namespace quire::bench
