#include "compiler_core/report/page.h"

#include <cstring>

namespace npuc {
namespace {

std::string PageAround(const char* before, absl::string_view json, const char* behind) {
  std::string page;
  page.reserve(std::strlen(before) + json.size() + std::strlen(behind) + 256);
  page += before;
  // "<" occurs in JSON inside strings alone, where its escape means the same; without it nothing
  // can look like the end of the element, or like a comment.
  size_t done = 0;
  for (size_t at = json.find('<'); at != absl::string_view::npos; at = json.find('<', done)) {
    page.append(json.data() + done, at - done);
    page += "\\u003c";
    done = at + 1;
  }
  page.append(json.data() + done, json.size() - done);
  page += behind;
  return page;
}

}  // namespace

std::string ReportPage(absl::string_view report_json) {
  return PageAround(kPageBefore, report_json, kPageBehind);
}

std::string ProfilePage(absl::string_view profile_json) {
  return PageAround(kProfileBefore, profile_json, kProfileBehind);
}

}  // namespace npuc
