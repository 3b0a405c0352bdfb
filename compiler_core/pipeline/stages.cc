#include "compiler_core/pipeline/stages.h"

#include <ctime>

#include "absl/strings/str_format.h"
#include "compiler_core/base/digest.h"

namespace npuc {

std::string ModelInfo(const CompileRequest& request) {
  const std::time_t seconds = request.timestamp_seconds;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return absl::StrFormat("%s(%04d%02d%02d%02d%02d%02d)", request.options.model_info,
                         utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                         utc.tm_sec);
}

std::string ModelMd5(const CompileRequest& request) {
  return request.model_md5 ? request.model_md5() : Md5Hex(request.model_bytes);
}

std::string ModelFileName(const CompileOptions& options) {
  const size_t dot = options.output_file.rfind('.');
  return absl::StrCat(options.output_file.substr(0, dot), ".npuc");
}

}  // namespace npuc
