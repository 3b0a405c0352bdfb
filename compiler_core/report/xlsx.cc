#include "compiler_core/report/xlsx.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/zip_writer.h"

namespace npuc {
namespace {

constexpr size_t kMaxRows = 1048576 - 1;  // of a sheet, below its head
constexpr size_t kMaxColumns = 26;        // A to Z
constexpr char kXmlHead[] = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
constexpr char kMain[] = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
constexpr char kRelations[] = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
constexpr char kPackageRelations[] = "http://schemas.openxmlformats.org/package/2006/relationships";
// Positions in cellXfs of kStyles.
constexpr int kPercentStyle = 1;
constexpr int kHeadStyle = 2;
constexpr char kStyles[] =
    "<fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font>"
    "<font><b/><sz val=\"11\"/><name val=\"Calibri\"/></font></fonts>"
    "<fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill>"
    "<fill><patternFill patternType=\"gray125\"/></fill></fills>"
    "<borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border></borders>"
    "<cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/>"
    "</cellStyleXfs><cellXfs count=\"3\">"
    "<xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\"/>"
    "<xf numFmtId=\"10\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" "
    "applyNumberFormat=\"1\"/>"
    "<xf numFmtId=\"0\" fontId=\"1\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyFont=\"1\"/>"
    "</cellXfs>";

// Text of an element or attribute. Control characters, which XML cannot hold, become spaces.
std::string SheetText(absl::string_view text) {
  std::string out =
      absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return out;
}

std::string CellName(size_t row, size_t column) {
  return absl::StrCat(std::string(1, static_cast<char>('A' + column)), row + 1);
}

void AppendText(const std::string& place, const std::string& text, int style, std::string& out) {
  absl::StrAppend(&out, "<c r=\"", place, "\" t=\"inlineStr\"");
  if (style != 0) absl::StrAppend(&out, " s=\"", style, "\"");
  absl::StrAppend(&out, "><is><t xml:space=\"preserve\">", SheetText(text), "</t></is></c>");
}

std::string NumberText(const TableCell& cell) {
  if (const int64_t* whole = std::get_if<int64_t>(&cell.value)) return absl::StrCat(*whole);
  const double number = std::get<double>(cell.value);
  return std::isfinite(number) ? JsonNumber(number) : "";
}

void AppendCell(const std::string& place, const TableCell& cell, std::string& out) {
  if (const std::string* text = std::get_if<std::string>(&cell.value)) {
    return AppendText(place, *text, 0, out);
  }
  const std::string number = NumberText(cell);
  if (number.empty()) return;
  absl::StrAppend(&out, "<c r=\"", place, "\"");
  if (cell.form == TableCell::Form::kPercent) absl::StrAppend(&out, " s=\"", kPercentStyle, "\"");
  absl::StrAppend(&out, "><v>", number, "</v></c>");
}

std::string SheetXml(const Table& table) {
  std::string out = absl::StrCat(
      kXmlHead, "<worksheet xmlns=\"", kMain,
      "\"><sheetViews><sheetView workbookViewId=\"0\"><pane ySplit=\"1\" topLeftCell=\"A2\" "
      "activePane=\"bottomLeft\" state=\"frozen\"/></sheetView></sheetViews><cols>");
  for (size_t i = 0; i < table.columns.size(); ++i) {
    constexpr size_t kWidest = 48;  // of a column, in characters
    size_t width = table.columns[i].size() + 4;
    for (const std::vector<TableCell>& row : table.rows) {
      const std::string* text = std::get_if<std::string>(&row[i].value);
      if (text != nullptr) width = std::max(width, text->size() + 2);
    }
    absl::StrAppend(&out, "<col min=\"", i + 1, "\" max=\"", i + 1, "\" width=\"",
                    std::min(width, kWidest), "\" customWidth=\"1\"/>");
  }
  absl::StrAppend(&out, "</cols><sheetData><row r=\"1\">");
  for (size_t i = 0; i < table.columns.size(); ++i) {
    AppendText(CellName(0, i), table.columns[i], kHeadStyle, out);
  }
  absl::StrAppend(&out, "</row>");
  for (size_t row = 0; row < table.rows.size(); ++row) {
    absl::StrAppend(&out, "<row r=\"", row + 2, "\">");
    for (size_t i = 0; i < table.rows[row].size(); ++i) {
      AppendCell(CellName(row + 1, i), table.rows[row][i], out);
    }
    absl::StrAppend(&out, "</row>");
  }
  absl::StrAppend(&out, "</sheetData><autoFilter ref=\"A1:",
                  CellName(table.rows.size(), table.columns.size() - 1), "\"/></worksheet>\n");
  return out;
}

std::string ContentTypes(size_t sheets) {
  constexpr char kSheet[] = "application/vnd.openxmlformats-officedocument.spreadsheetml.";
  std::string out = absl::StrCat(
      kXmlHead, "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">",
      "<Default Extension=\"rels\" "
      "ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>",
      "<Default Extension=\"xml\" ContentType=\"application/xml\"/>",
      "<Override PartName=\"/xl/workbook.xml\" ContentType=\"", kSheet, "sheet.main+xml\"/>",
      "<Override PartName=\"/xl/styles.xml\" ContentType=\"", kSheet, "styles+xml\"/>");
  for (size_t i = 1; i <= sheets; ++i) {
    absl::StrAppend(&out, "<Override PartName=\"/xl/worksheets/sheet", i, ".xml\" ContentType=\"",
                    kSheet, "worksheet+xml\"/>");
  }
  return out + "</Types>\n";
}

std::string Relation(size_t id, absl::string_view type, absl::string_view target) {
  return absl::StrCat("<Relationship Id=\"rId", id, "\" Type=\"", kRelations, "/", type,
                      "\" Target=\"", target, "\"/>");
}

std::string RelationsXml(const std::vector<std::string>& relations) {
  return absl::StrCat(kXmlHead, "<Relationships xmlns=\"", kPackageRelations, "\">",
                      absl::StrJoin(relations, ""), "</Relationships>\n");
}

std::string WorkbookXml(const std::vector<Table>& tables) {
  std::string out = absl::StrCat(kXmlHead, "<workbook xmlns=\"", kMain, "\" xmlns:r=\"", kRelations,
                                 "\"><sheets>");
  for (size_t i = 1; i <= tables.size(); ++i) {
    absl::StrAppend(&out, "<sheet name=\"", SheetText(tables[i - 1].name), "\" sheetId=\"", i,
                    "\" r:id=\"rId", i, "\"/>");
  }
  return out + "</sheets></workbook>\n";
}

}  // namespace

absl::StatusOr<std::string> WriteXlsx(const std::vector<Table>& tables) {
  for (const Table& table : tables) {
    if (table.rows.size() > kMaxRows || table.columns.size() > kMaxColumns) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a table of ", table.rows.size(), " rows and ", table.columns.size(),
                       " columns; a sheet has up to ", kMaxRows, " and ", kMaxColumns));
    }
  }
  std::vector<std::string> parts;
  for (size_t i = 1; i <= tables.size(); ++i) {
    parts.push_back(Relation(i, "worksheet", absl::StrCat("worksheets/sheet", i, ".xml")));
  }
  parts.push_back(Relation(tables.size() + 1, "styles", "styles.xml"));
  std::vector<ZipFile> files = {
      {"[Content_Types].xml", ContentTypes(tables.size())},
      {"_rels/.rels", RelationsXml({Relation(1, "officeDocument", "xl/workbook.xml")})},
      {"xl/workbook.xml", WorkbookXml(tables)},
      {"xl/_rels/workbook.xml.rels", RelationsXml(parts)},
      {"xl/styles.xml",
       absl::StrCat(kXmlHead, "<styleSheet xmlns=\"", kMain, "\">", kStyles, "</styleSheet>\n")}};
  for (size_t i = 1; i <= tables.size(); ++i) {
    files.push_back({absl::StrCat("xl/worksheets/sheet", i, ".xml"), SheetXml(tables[i - 1])});
  }
  return WriteZip(files);
}

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string WriteCsv(const Table& table) {
  const auto field = [](std::string* out, absl::string_view text) { *out += CsvField(text); };
  std::string out = absl::StrCat(absl::StrJoin(table.columns, ",", field), "\n");
  for (const std::vector<TableCell>& row : table.rows) {
    absl::StrAppend(&out,
                    absl::StrJoin(row, ",",
                                  [](std::string* line, const TableCell& cell) {
                                    const std::string* text = std::get_if<std::string>(&cell.value);
                                    *line += text != nullptr ? CsvField(*text) : NumberText(cell);
                                  }),
                    "\n");
  }
  return out;
}

}  // namespace npuc
