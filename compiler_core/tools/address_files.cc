#include "compiler_core/tools/address_files.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/addresses.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/tools/files.h"
#include "nlohmann/json.hpp"

namespace npuc {

absl::Status TakeAddressFile(const std::string& path, CompileRequest& request,
                             Diagnostics& diagnostics) {
  if (path.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxAddressFileBytes);
  if (!text.ok()) {
    diagnostics.Add({.kind = DiagnosticKind::kFileUnreadable,
                     .message = std::string(text.status().message()),
                     .file = path,
                     .fix = "name a file of --dump_addr_cfg"});
    return diagnostics.ToStatus();
  }
  request.side_inputs[kAddressesRole] = {path, std::make_shared<OwnedSource>(*text)};
  return absl::OkStatus();
}

absl::StatusOr<std::string> AddressFileOf(absl::string_view report_json) {
  const nlohmann::json report = nlohmann::json::parse(report_json, nullptr, false);
  if (report.is_discarded() || report.value("omitted", nlohmann::json()).contains("memory_map")) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--dump_addr_cfg: the model has more than ", kMaxAddressBuffers, " buffers"));
  }
  std::vector<BufferFigures> map;
  for (const nlohmann::json& buffer : report["memory_map"]["buffers"]) {
    map.push_back({buffer["node"], buffer["offset"], buffer["bytes"], {}});
  }
  return AddressText(map);
}

}  // namespace npuc
