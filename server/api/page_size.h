#ifndef NPUC_SERVER_API_PAGE_SIZE_H_
#define NPUC_SERVER_API_PAGE_SIZE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/jobs/service_error.h"

namespace npuc::api {

inline constexpr int32_t kMaxPageSize = 1000;

// The entries of a page by a request's field page_size: 0 to kMaxPageSize, where 0 stands for
// `usual`. `check` gets a field that is neither.
inline size_t ReadPageSize(int32_t page_size, size_t usual, jobs::FieldChecker& check) {
  if (page_size < 0 || page_size > kMaxPageSize) {
    check.Add("page_size", absl::StrCat(page_size, " is not in 0 to ", kMaxPageSize));
  }
  return page_size == 0 ? usual : static_cast<size_t>(page_size);
}

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_PAGE_SIZE_H_
