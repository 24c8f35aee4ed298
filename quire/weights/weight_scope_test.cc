#include "quire/weights/weight_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/base/error.h"
#include "quire/weights/testing/memory_source.h"
#include "quire/weights/testing/reading_backend.h"

namespace quire::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ReadingBackend;

struct WeightScopeTest : ::testing::Test {
  WeightScopeTest() {
    source.add("a.q_proj.weight", {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    source.add("a.q_proj.bias", {4}, {10, 11, 12, 13});
    source.add("a.norm.weight", {2}, {1, 2});
  }
  std::string error_of(const std::function<void()>& load) {
    try {
      load();
    } catch (const LoadError& error) {
      return error.what();
    }
    return "no error";
  }

  testing::MemorySource source;
  ReadingBackend backend;
};

TEST_F(WeightScopeTest, ReadsReleasesAndCounts) {
  std::vector<int64_t> done;
  const WeightScope root(source, backend, {}, [&](int64_t bytes, int64_t total) {
    EXPECT_EQ(total, 56);
    done.push_back(bytes);
  });
  const WeightScope q = root.child("a").child("q_proj");
  EXPECT_EQ(q.name(), "q_proj");
  EXPECT_EQ(q.path(), "a.q_proj");
  EXPECT_THAT(root.unread(), ElementsAre("a.norm.weight", "a.q_proj.bias", "a.q_proj.weight"));

  EXPECT_EQ(q.weight(4, 2)->spec.name, "a.q_proj.weight");
  EXPECT_THAT(backend.values(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(source.released(), ElementsAre("a.q_proj.weight"));
  EXPECT_THAT(q.optional_vector("bias", 4), ElementsAre(10, 11, 12, 13));
  EXPECT_TRUE(q.optional_vector("scale", 4).empty());
  EXPECT_THAT(root.unread(), ElementsAre("a.norm.weight"));
  EXPECT_THAT(done, ElementsAre(32, 48));
}

TEST_F(WeightScopeTest, UndoesInterleavedRowsOfMatrixAndBias) {
  const WeightScope root(source, backend, {});
  EXPECT_EQ(root.rope_rows(4).stored_row(1), 1);
  source.set_interleaved(true);
  const WeightScope q = root.child("a.q_proj");
  q.weight(4, 2, q.rope_rows(4));
  EXPECT_THAT(backend.values(), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(q.vector("bias", 4, q.rope_rows(4)), ElementsAre(10, 12, 11, 13));
}

TEST_F(WeightScopeTest, NamesWhatIsMissingOrMisshapen) {
  const WeightScope root(source, backend, {});
  const WeightScope q = root.child("a.q_proj");
  EXPECT_THAT(error_of([&] { root.child("b").weight(4, 2); }), HasSubstr("b.weight"));
  const std::string shape = error_of([&] { q.weight(2, 4); });
  EXPECT_THAT(shape, HasSubstr("a.q_proj.weight"));
  EXPECT_THAT(shape, HasSubstr("[2, 4]"));
  EXPECT_THAT(shape, HasSubstr("[4, 2]"));
  EXPECT_THAT(error_of([&] { q.vector("bias", 5); }), HasSubstr("[5]"));
  source.add("a.codes", DType::kI8, {4}, std::vector<std::byte>(4));
  EXPECT_THAT(error_of([&] { root.child("a").vector("codes", 4); }), HasSubstr("I8"));
}

TEST_F(WeightScopeTest, ASkippedTensorCountsAsUsed) {
  const WeightScope root(source, backend, {});
  root.child("a").skip("norm.weight");
  EXPECT_THAT(root.unread(), ElementsAre("a.q_proj.bias", "a.q_proj.weight"));
}

}  // namespace
}  // namespace quire::weights
