#include "compiler_core/report/page.h"

#include <cstring>

namespace npuc {

std::string ReportPage(absl::string_view report_json) {
  std::string page;
  page.reserve(std::strlen(kPageBefore) + report_json.size() + std::strlen(kPageBehind) + 256);
  page += kPageBefore;
  // "<" occurs in JSON inside strings alone, where its escape means the same; without it nothing
  // can look like the end of the element, or like a comment.
  size_t done = 0;
  for (size_t at = report_json.find('<'); at != absl::string_view::npos;
       at = report_json.find('<', done)) {
    page.append(report_json.data() + done, at - done);
    page += "\\u003c";
    done = at + 1;
  }
  page.append(report_json.data() + done, report_json.size() - done);
  page += kPageBehind;
  return page;
}

}  // namespace npuc
