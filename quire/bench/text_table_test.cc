#include "quire/bench/text_table.h"

#include <gtest/gtest.h>

namespace quire::bench {
namespace {

TEST(TextTable, AlignsTheFirstColumnLeftAndNumbersRight) {
  TextTable table({"kernel", "GB/s", "share"});
  table.add({"int4 g128", "80.1", "94 %"});
  table.add({"a", "7"});
  EXPECT_EQ(table.text(),
            "kernel     GB/s  share\n"
            "int4 g128  80.1   94 %\n"
            "a             7\n");
  EXPECT_EQ(table.markdown(),
            "| kernel | GB/s | share |\n"
            "|---|---:|---:|\n"
            "| int4 g128 | 80.1 | 94 % |\n"
            "| a | 7 |  |\n");
}

TEST(TextTable, PercentOfAnUnknownCeilingIsADash) {
  EXPECT_EQ(percent_text(43, 50), "86 %");
  EXPECT_EQ(percent_text(43, 0), "-");
}

TEST(TextTable, TimesReadInTheirUnit) {
  EXPECT_EQ(time_text(4.2e-7), "420 ns");
  EXPECT_EQ(time_text(9.31e-6), "9.3 us");
  EXPECT_EQ(time_text(0.01414), "14.14 ms");
  EXPECT_EQ(time_text(2.309), "2.31 s");
}

}  // namespace
}  // namespace quire::bench
