#include "quire/backend/cpu/step_profile.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace quire::backend::cpu {
namespace {

std::shared_ptr<const PackedWeight> weight_of(int64_t out) {
  auto weight = std::make_shared<PackedWeight>();
  weight->spec.in = 16;
  weight->spec.out = out;
  weight->spec.layout = Layout::kDense;
  weight->spec.dtype = DType::kF32;
  return weight;
}

/// norm, prepare | two matmuls, of 16 and of 48 outputs | gather (without rows here) | add
class StepTimerTest : public testing::Test {
 protected:
  StepTimerTest() {
    for (const OpKind kind : {OpKind::kRmsNorm, OpKind::kPrepare, OpKind::kMatmul, OpKind::kMatmul,
                              OpKind::kGatherRows, OpKind::kAdd}) {
      program_.ops.emplace_back().kind = kind;
    }
    program_.weights = {weight_of(16), weight_of(48)};
    program_.ops[2].weight = 0;
    program_.ops[3].weight = 1;
    phases_ = {{Phase::Kind::kRows, Rows::kTokens, 0, 2},
               {Phase::Kind::kMatmuls, Rows::kTokens, 2, 4},
               {Phase::Kind::kRows, Rows::kLogits, 4, 5},
               {Phase::Kind::kRows, Rows::kTokens, 5, 6}};
  }

  Program program_;
  std::vector<Phase> phases_;
};

TEST_F(StepTimerTest, PhasesFollowEachOtherAndShareTheirTimeOut) {
  StepTimer timer(program_, phases_, 2);
  for (int step = 0; step < 2; ++step) {  // the second finds nothing of the first
    timer.begin_step();
    const int64_t zero = timer.profile().step.begin_ns;
    const auto note = [&](size_t phase, int worker, int64_t begin, int64_t end) {
      timer.note(phase, worker, {zero + begin, zero + end});
    };
    note(0, 0, 100, 300);
    note(0, 1, 150, 400);
    note(1, 0, 410, 600);
    note(1, 0, 610, 800);  // took items twice
    note(1, 1, 420, 1200);
    note(3, 1, 1250, 1300);  // worker 0 had nothing to do
    timer.end_step();
    const StepProfile& profile = timer.profile();
    const auto span = [&](size_t phase) {
      return std::pair(profile.phases[phase].begin_ns - zero, profile.phases[phase].end_ns - zero);
    };
    EXPECT_EQ(span(0), std::pair(int64_t{0}, int64_t{400}));
    EXPECT_EQ(span(1), std::pair(int64_t{400}, int64_t{1200}));
    EXPECT_EQ(span(2), std::pair(int64_t{1200}, int64_t{1200}));
    EXPECT_EQ(span(3), std::pair(int64_t{1200}, int64_t{1300}));
    EXPECT_EQ(profile.work_of(1, 0).begin_ns - zero, 410);
    EXPECT_EQ(profile.work_of(1, 0).end_ns - zero, 800);
    EXPECT_EQ(profile.work_of(3, 0).duration(), 0);
    EXPECT_EQ(profile.op_ns[0] + profile.op_ns[1], 400);
    EXPECT_EQ(profile.op_ns[2], 200);  // by weights: 1 to 3
    EXPECT_EQ(profile.op_ns[3], 600);
    EXPECT_EQ(profile.op_ns[4], 0);
    EXPECT_EQ(profile.op_ns[5], 100);
  }
}

TEST_F(StepTimerTest, RowOperationsCountByWhatWorkersSpentInThem) {
  StepTimer timer(program_, phases_, 2);
  timer.begin_step();
  const int64_t begin = steady_ns();
  {
    const StepTimer::Scope scope(&timer, 0, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  {
    const StepTimer::Scope scope(&timer, 1, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  timer.note(0, 0, {begin, steady_ns()});
  timer.end_step();
  const StepProfile& profile = timer.profile();
  EXPECT_GT(profile.op_ns[0], 0);
  EXPECT_GT(profile.op_ns[1], profile.op_ns[0]);
  EXPECT_EQ(profile.op_ns[0] + profile.op_ns[1], profile.phases[0].duration());
  const StepTimer::Scope none(nullptr, 0, 0);  // times nothing
}

}  // namespace
}  // namespace quire::backend::cpu
