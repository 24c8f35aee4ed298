// The profile of a real engine: what it adds up, and a trace that viewers can read.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "quire/backend/dryrun/step_cost.h"
#include "quire/checkpoint/testing/temp_folder.h"
#include "quire/llm/llm.h"
#include "quire/llm/profile_json.h"
#include "quire/llm/profile_steps.h"
#include "quire/llm/profile_trace.h"
#include "quire/llm/profile_verify.h"
#include "tests/golden/tiny_model.h"

namespace quire {
namespace {

namespace json = boost::json;

constexpr int kThreads = 2;

// A sanitizer keeps memory of its own and what was freed.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

llm::Options options_for(const std::string& folder) {
  llm::Options options;
  options.model = folder;
  options.max_num_seqs = 4;
  options.max_num_batched_tokens = 64;
  options.threads = kThreads;
  options.enable_prefix_caching = false;
  return options;
}

std::vector<std::vector<int32_t>> prompts_of(const llm::LLM& llm, int count, int length) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int32_t> token(0,
                                               static_cast<int32_t>(llm.config().vocab_size) - 1);
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(count));
  for (auto& prompt : prompts) {
    for (int i = 0; i < length; ++i) prompt.push_back(token(random));
  }
  return prompts;
}

/// Runs three prompts of 20 tokens with 6 new ones each.
class ProfileTest : public testing::Test {
 protected:
  void profile(llm::RooflineCeilings ceilings = {}, int64_t max_traced_steps = 400) {
    profiler_ = llm::StepProfiler(ceilings);
    trace_ = llm::StepTrace(max_traced_steps);
    golden::write_folder(golden::tiny_models().front(), folder_.path());
    llm::Options options = options_for(folder_.path());
    options.on_step_record = [this](const llm::StepRecord& record) {
      profiler_.observe(record);
      trace_.observe(record);
      ++steps_;
      tokens_ += static_cast<int64_t>(record.plan.tokens.size());
      num_ops_ = record.program.ops.size();
      backend::dryrun::StepShape shape;
      for (const auto& row : record.plan.rows) {
        shape.rows.push_back({row.num_tokens, row.context_len});
      }
      shape.num_logits = static_cast<int64_t>(record.plan.logits_rows.size());
      const auto cost =
          backend::dryrun::total_cost(backend::dryrun::step_cost(record.program, shape));
      operations_ += cost.operations;
      bytes_ += cost.bytes();
    };
    llm::LLM llm(options);
    llm::SamplingParams params;
    params.temperature = 0.0F;
    params.max_tokens = 6;
    params.ignore_eos = true;
    for (const auto& output : llm.generate(prompts_of(llm, 3, 20), params)) {
      ASSERT_FALSE(output.error.has_value());
    }
    llm.engine().stop();
  }

  checkpoint::testing::TempFolder folder_;
  llm::StepProfiler profiler_;
  llm::StepTrace trace_;
  int64_t steps_ = 0;
  int64_t tokens_ = 0;
  size_t num_ops_ = 0;
  int64_t operations_ = 0;
  int64_t bytes_ = 0;
};

TEST_F(ProfileTest, AddsUpWhatStepsDid) {
  profile();
  int64_t steps = 0;
  int64_t tokens = 0;
  int64_t operations = 0;
  int64_t bytes = 0;
  for (const auto step_class : {llm::StepClass::kPrefill, llm::StepClass::kDecode}) {
    const llm::StepTotals& totals = profiler_.totals(step_class);
    ASSERT_GT(totals.steps, 0) << llm::step_class_name(step_class);
    EXPECT_EQ(totals.lines.size(), num_ops_);
    steps += totals.steps;
    tokens += totals.tokens;
    EXPECT_GE(totals.step_ns, totals.forward_ns + totals.sample_ns);
    llm::OpTotals sum;
    for (const llm::ProfileLine& line : totals.lines) {
      EXPECT_FALSE(line.name.empty());
      EXPECT_EQ(line.totals.calls, totals.steps);
      sum.add(line.totals);
    }
    // What is not an operation's is waking the workers at the beginning.
    EXPECT_GT(sum.ns, 0);
    EXPECT_LE(sum.ns, totals.forward_ns);
    operations += sum.operations;
    bytes += sum.bytes();
    llm::OpTotals by_kind;
    for (const llm::ProfileLine& line : llm::by_kind(totals)) by_kind.add(line.totals);
    EXPECT_EQ(by_kind.ns, sum.ns);
    EXPECT_EQ(by_kind.bytes(), sum.bytes());
  }
  EXPECT_EQ(steps, steps_);
  EXPECT_EQ(tokens, tokens_);
  EXPECT_EQ(operations, operations_);
  EXPECT_EQ(bytes, bytes_);
  EXPECT_EQ(profiler_.totals(llm::StepClass::kDecode).lines.front().totals.ideal_ns, 0);
}

TEST_F(ProfileTest, TablesAndJsonHaveTheSameNumbers) {
  profile({.memory_gbs = 10, .cache_gbs = 100, .fp32_gflops = 50});
  const llm::StepTotals& totals = profiler_.totals(llm::StepClass::kDecode);
  const std::string by_kind = llm::format_profile(profiler_, llm::StepClass::kDecode, false);
  const std::string by_line = llm::format_profile(profiler_, llm::StepClass::kDecode, true);
  for (const char* part : {"decode", "calls", "share", "GB/s", "GOP/s", "of roofline", "total"}) {
    EXPECT_NE(by_kind.find(part), std::string::npos) << by_kind;
  }
  const json::object as_json = llm::step_profile_json(profiler_, llm::StepClass::kDecode);
  const json::array& lines = as_json.at("operations").as_array();
  ASSERT_EQ(lines.size(), totals.lines.size());
  double share = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const llm::OpTotals& of = totals.lines[i].totals;
    EXPECT_NE(by_line.find(totals.lines[i].name), std::string::npos);
    EXPECT_EQ(lines[i].at("name").as_string(), totals.lines[i].name);
    EXPECT_DOUBLE_EQ(lines[i].at("ms").as_double(), static_cast<double>(of.ns) / 1e6);
    EXPECT_EQ(lines[i].at("bytes").as_int64(), of.bytes());
    share += lines[i].at("share").as_double();
  }
  int64_t ns = 0;
  for (const llm::ProfileLine& line : totals.lines) ns += line.totals.ns;
  EXPECT_NEAR(share, static_cast<double>(ns) / static_cast<double>(totals.forward_ns), 1e-9);
}

TEST_F(ProfileTest, RooflineIsTheSlowestOfItsCeilings) {
  profile({.memory_gbs = 2, .cache_gbs = 8, .fp32_gflops = 4});
  for (const llm::ProfileLine& line : profiler_.totals(llm::StepClass::kPrefill).lines) {
    const llm::OpTotals& of = line.totals;
    const double compute = static_cast<double>(of.operations) / 4;
    const double memory = static_cast<double>(of.weight_bytes + of.kv_bytes) / 2;
    const double cache = static_cast<double>(of.bytes()) / 8;
    // One sum may be bound otherwise from step to step, so it is no less than each alone.
    EXPECT_GE(of.ideal_ns * 1.0001, std::max({compute, memory, cache})) << line.name;
    EXPECT_LE(of.ideal_ns, compute + memory + cache) << line.name;
  }
}

struct Event {
  double begin = 0;
  double end = 0;
  std::string name;
};

TEST_F(ProfileTest, TheTraceIsMonotonicNestedAndNamed) {
  profile();
  std::ostringstream text;
  trace_.write(text);
  const json::value parsed = json::parse(text.str());
  std::map<int64_t, std::vector<Event>> threads;
  std::map<int64_t, std::string> thread_names;
  std::map<std::string, int> instants;
  int counters = 0;
  for (const json::value& value : parsed.at("traceEvents").as_array()) {
    const json::object& event = value.as_object();
    const std::string phase(event.at("ph").as_string());
    const int64_t thread = event.at("tid").as_int64();
    const std::string name(event.at("name").as_string());
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(event.at("pid").as_int64(), 1);
    if (phase == "M") {
      if (name == "thread_name") {
        thread_names[thread] = std::string(event.at("args").at("name").as_string());
      }
      continue;
    }
    const double begin = event.at("ts").to_number<double>();
    EXPECT_GE(begin, 0);
    if (phase == "X") {
      threads[thread].push_back({begin, begin + event.at("dur").to_number<double>(), name});
    } else if (phase == "i") {
      ++instants[name];
    } else {
      EXPECT_EQ(phase, "C");
      ++counters;
    }
  }
  EXPECT_EQ(instants["start"], 3);
  EXPECT_EQ(counters, 2 * steps_);
  EXPECT_EQ(trace_.num_steps(), steps_);
  EXPECT_EQ(thread_names.size(), 1U + kThreads);
  // A worker that comes too late for every phase of so small a model has none.
  ASSERT_GE(threads.size(), 2U);
  ASSERT_LE(threads.size(), 1U + kThreads);
  constexpr double kRounding = 0.0015;  // microseconds, in three decimals
  for (auto& [thread, events] : threads) {
    EXPECT_FALSE(thread_names[thread].empty());
    // Parents first: every event lies within the one that is open, or behind it.
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return a.begin < b.begin || (a.begin == b.begin && a.end > b.end);
    });
    std::vector<Event> open;
    for (const Event& event : events) {
      EXPECT_LE(event.begin, event.end) << event.name;
      while (!open.empty() && open.back().end <= event.begin + kRounding) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(event.end, open.back().end + kRounding)
            << event.name << " reaches out of " << open.back().name;
        EXPECT_EQ(thread, 0) << "phases of one worker do not overlap";
      }
      open.push_back(event);
    }
  }
  std::map<std::string, int> names;
  for (const Event& event : threads[0]) ++names[event.name];
  EXPECT_EQ(names["prefill step"] + names["decode step"], steps_);
  for (const char* each : {"forward", "sample", "profile"}) EXPECT_EQ(names[each], steps_) << each;
  EXPECT_EQ(names["schedule"], steps_ - 1);
  std::set<std::string> phases;
  for (int thread = 1; thread <= kThreads; ++thread) {
    for (const Event& event : threads[thread]) phases.insert(event.name);
  }
  const auto named = [&phases](const char* part) {
    return std::any_of(phases.begin(), phases.end(), [part](const std::string& name) {
      return name.find(part) != std::string::npos;
    });
  };
  for (const char* part : {"layers.0", "attention", "matmul", "rms_norm"}) {
    EXPECT_TRUE(named(part)) << part;
  }
}

TEST_F(ProfileTest, ALongTraceIsCut) {
  profile({}, 2);
  EXPECT_EQ(trace_.num_steps(), 2);
  EXPECT_EQ(trace_.num_left_out(), steps_ - 2);
}

// Weights, KV and arena to the byte; what is resident within the tolerance.
TEST(VerifyMemory, TinyModelsTakeWhatIsCounted) {
  for (const golden::TinyModel& model : golden::tiny_models()) {
    const checkpoint::testing::TempFolder folder;
    golden::write_folder(model, folder.path());
    llm::Verification done = llm::verify_memory(options_for(folder.path()));
    EXPECT_EQ(done.lines.size(), 9U);
    if (kSanitized) {
      std::erase_if(done.lines, [](const llm::VerifiedLine& line) { return line.tolerance > 0; });
    }
    EXPECT_TRUE(done.ok()) << model.name << "\n" << llm::format_verification(done);
    EXPECT_EQ(done.most_tokens, 64) << model.name;
    EXPECT_EQ(done.most_rows, 4) << model.name;
  }
}

TEST(VerifyMemory, FindsAByteTooManyInEachPart) {
  const checkpoint::testing::TempFolder folder;
  golden::write_folder(golden::tiny_models().front(), folder.path());
  const llm::Options options = options_for(folder.path());
  const llm::MemoryReport right = llm::count_memory(options);
  for (int64_t llm::MemoryReport::*part :
       {&llm::MemoryReport::weights, &llm::MemoryReport::kv_cache, &llm::MemoryReport::arena,
        &llm::MemoryReport::worker_scratch, &llm::MemoryReport::other}) {
    llm::Prediction wrong{.plan = right};
    wrong.plan.*part += 1;
    EXPECT_FALSE(llm::verify_memory(options, wrong).ok());
  }
  llm::Prediction large{.plan = right, .process_bytes = int64_t{200} << 20};
  EXPECT_FALSE(llm::verify_memory(options, large).ok());
}

TEST(VerifyMemory, SaysWhatDiffers) {
  llm::Verification wrong;
  wrong.lines = {{"weights", 100, 101, 0}, {"resident", 1000, 1050, 50}};
  EXPECT_FALSE(wrong.ok());
  EXPECT_NE(llm::format_verification(wrong).find("DIFFERS"), std::string::npos);
  wrong.lines.front().measured = 100;
  EXPECT_TRUE(wrong.ok());
  EXPECT_EQ(llm::format_verification(wrong).find("DIFFERS"), std::string::npos);
  wrong.lines.back().measured = 1051;
  EXPECT_FALSE(wrong.ok());
  EXPECT_NE(llm::format_verification(wrong).find("NOT WITHIN"), std::string::npos);
}

}  // namespace
}  // namespace quire
