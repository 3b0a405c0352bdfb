#ifndef NPUC_COMPILER_CORE_REPORT_PAGE_H_
#define NPUC_COMPILER_CORE_REPORT_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace npuc {

// report.html: a page that draws report.json, in one file that fetches nothing. Pure. `report_json`
// must be JSON; text of it cannot end the script element that holds it.
std::string ReportPage(absl::string_view report_json);

// Makes the page of a profile (profile_data.h): two tables, of which the longer sorts by each
// column.
std::string ProfilePage(absl::string_view profile_json);

// The pages' text around the JSON (page/, by embed_page.py).
extern const char kPageBefore[];
extern const char kPageBehind[];
extern const char kProfileBefore[];
extern const char kProfileBehind[];

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_PAGE_H_
