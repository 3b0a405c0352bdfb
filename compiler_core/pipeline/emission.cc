#include "compiler_core/pipeline/emission.h"

#include <ctime>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/pipeline/file_limits.h"
#include "compiler_core/quant/opt_template.h"
#include "compiler_core/quant/statistics.h"

namespace npuc {
namespace {

// The text of a header's model_info line.
std::string ModelInfo(const CompileRequest& request) {
  const std::time_t seconds = request.timestamp_seconds;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return absl::StrFormat("%s(%04d%02d%02d%02d%02d%02d)", request.options.model_info,
                         utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                         utc.tm_sec);
}

// The name of the model file beside the header.
std::string ModelFileName(const CompileOptions& options) {
  const size_t dot = options.output_file.rfind('.');
  return absl::StrCat(options.output_file.substr(0, dot), ".npuc");
}

}  // namespace

absl::Status Emit(const CompileRequest& request, const std::shared_ptr<CompiledUnit>& unit,
                  CompileObserver& observer, Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  unit->model.version = std::string(CompilerVersion());
  unit->model.model_md5 = request.model_md5 ? request.model_md5() : Md5Hex(request.model_bytes);
  unit->model.model_info = ModelInfo(request);
  const std::shared_ptr<const CompiledModel> model(unit, &unit->model);
  RETURN_IF_ERROR(CheckCHeader(*model, diagnostics));
  observer.OnArtifact(
      {options.output_file, [model](const ByteSink& sink) { return WriteCHeader(*model, sink); }});
  const auto add = [&](const char* name, std::string bytes, size_t most) {
    if (bytes.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(CheckFileSize(name, bytes.size(), most, options.model_name, diagnostics));
    observer.OnArtifact({name, WriterOf(std::move(bytes))});
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add("opt_template.json", std::move(unit->opt_template), kMaxTemplateBytes));
  RETURN_IF_ERROR(add("statistics.json", std::move(unit->statistics), kMaxStatisticsBytes));
  observer.OnArtifact({ModelFileName(options),
                       [model](const ByteSink& sink) { return WriteModelFile(*model, sink); }});
  return absl::OkStatus();
}

}  // namespace npuc
