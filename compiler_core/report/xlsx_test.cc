#include "compiler_core/report/xlsx.h"

#include <cmath>
#include <string>
#include <vector>

#include "compiler_core/base/zip_directory.h"
#include "compiler_core/base/zip_entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;
using testing::Not;

Table SmallTable() {
  return {"DATA",
          {"name", "count", "share"},
          {{{std::string("a,\"b\"<&\x01")}, {int64_t{7}}, {0.25, TableCell::Form::kPercent}},
           {{std::string("c")}, {int64_t{-1}}, {std::nan("")}}}};
}

// The text of one part of a workbook.
std::string Part(const std::string& workbook, absl::string_view name) {
  constexpr int64_t kMaxEntries = 16;
  const auto records = ReadZipDirectory(workbook, kMaxEntries);
  EXPECT_TRUE(records.ok()) << records.status();
  if (!records.ok()) return "";
  for (const ZipRecord& record : *records) {
    if (record.name != name) continue;
    std::string inflated;
    const auto bytes = ReadZipEntry(workbook, record, inflated);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? std::string(*bytes) : "";
  }
  ADD_FAILURE() << "no part " << name;
  return "";
}

TEST(XlsxTest, EachTableIsASheet) {
  Table second = SmallTable();
  second.name = "SUM";
  const absl::StatusOr<std::string> workbook = WriteXlsx({SmallTable(), second});
  ASSERT_TRUE(workbook.ok()) << workbook.status();
  EXPECT_THAT(Part(*workbook, "xl/workbook.xml"), HasSubstr("<sheet name=\"SUM\" sheetId=\"2\""));
  const std::string sheet = Part(*workbook, "xl/worksheets/sheet1.xml");
  EXPECT_THAT(sheet, HasSubstr(">a,&quot;b&quot;&lt;&amp; <"));
  EXPECT_THAT(sheet, HasSubstr("<c r=\"B2\"><v>7</v></c>"));
  EXPECT_THAT(sheet, HasSubstr("<c r=\"C2\" s=\"1\"><v>0.25</v></c>"));
  EXPECT_THAT(sheet, Not(HasSubstr("r=\"C3\"")));  // not finite: an empty cell
  EXPECT_THAT(sheet, HasSubstr("<autoFilter ref=\"A1:C3\"/>"));
  EXPECT_EQ(*workbook, *WriteXlsx({SmallTable(), second}));
}

TEST(XlsxTest, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(WriteCsv(SmallTable()), "name,count,share\n\"a,\"\"b\"\"<&\x01\",7,0.25\nc,-1,\n");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
}

TEST(XlsxTest, RefusesMoreColumnsThanItNames) {
  Table wide{"WIDE", std::vector<std::string>(27, "c"), {}};
  EXPECT_EQ(WriteXlsx({wide}).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace npuc
