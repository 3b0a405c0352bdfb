#ifndef NPUC_COMPILER_CORE_REPORT_XLSX_H_
#define NPUC_COMPILER_CORE_REPORT_XLSX_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// Tables as a spreadsheet (Office Open XML, ECMA-376 part 1, SpreadsheetML) and as comma-separated
// values (RFC 4180). Pure.

struct TableCell {
  enum class Form : uint8_t { kPlain, kPercent };
  std::variant<std::string, int64_t, double> value;  // text is UTF-8
  Form form = Form::kPlain;                          // kPercent: 0.25 is shown as 25.00%
};

struct Table {
  std::string name;  // of the sheet: at most 31 characters, none of []:*?/ and backslash
  std::vector<std::string> columns;
  std::vector<std::vector<TableCell>> rows;  // as many cells as columns
};

// A workbook with a sheet for each table. The first row stays in sight and has filters by which
// rows are sorted. RESOURCE_EXHAUSTED: more rows than a sheet has.
absl::StatusOr<std::string> WriteXlsx(const std::vector<Table>& tables);

// A head line, then a line for each row. Shares are written as numbers.
std::string WriteCsv(const Table& table);
// One field: quoted where it needs to be.
std::string CsvField(absl::string_view text);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_XLSX_H_
