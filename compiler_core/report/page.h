#ifndef NPUC_COMPILER_CORE_REPORT_PAGE_H_
#define NPUC_COMPILER_CORE_REPORT_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace npuc {

// report.html: a page that draws report.json, in one file that fetches nothing. Pure. `report_json`
// must be JSON; text of it cannot end the script element that holds it.
std::string ReportPage(absl::string_view report_json);

// The page's text around the JSON (page/, by embed_page.py).
extern const char kPageBefore[];
extern const char kPageBehind[];

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_PAGE_H_
