// inspect: what a model is, which cores take it, and a config for one of them.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/lib/local_file.h"
#include "client/npuc_remote/commands.h"
#include "client/npuc_remote/job_input.h"
#include "client/npuc_remote/output.h"
#include "compiler_core/base/file_beside.h"
#include "compiler_core/base/framework.h"
#include "compiler_core/base/status.h"

namespace npuc::remote {
namespace {

struct ModelFiles {
  v1::InspectModelRequest request;
  std::vector<client::LocalFile> files;
};

std::string BaseName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

bool HasEnding(absl::string_view model, absl::string_view endings) {
  const std::string lower = absl::AsciiStrToLower(model);
  for (const absl::string_view ending : absl::StrSplit(endings, '|', absl::SkipEmpty())) {
    if (absl::EndsWith(lower, ending)) return true;
  }
  return false;
}

// The second file that lies beside a model, and the config key that names it: of the format that
// the model's ending tells, else of a format whose models have any ending.
std::optional<std::pair<std::string, std::string>> FileBeside(const std::string& model) {
  const auto formats = AllFrameworks();
  const bool is_told = std::any_of(formats.begin(), formats.end(), [&](const FrameworkInfo& info) {
    return HasEnding(model, info.endings);
  });
  for (const FrameworkInfo& info : formats) {
    const bool fits = is_told ? HasEnding(model, info.endings) : info.endings.empty();
    if (info.data_ending.empty() || !fits) continue;
    std::string path = FindFileBeside(info, model, "").path;
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) {
      return std::pair(std::string(info.data_key), std::move(path));
    }
  }
  return std::nullopt;
}

absl::Status AddSideInput(const std::string& role, const std::string& path, ModelFiles& model) {
  ASSIGN_OR_RETURN(client::LocalFile file, client::DescribeFile(path));
  v1::SideInput* const side = model.request.add_side_inputs();
  side->set_role(role);
  side->set_name(BaseName(path));
  SetDigest(file, *side->mutable_digest());
  model.files.push_back(std::move(file));
  return absl::OkStatus();
}

absl::StatusOr<ModelFiles> ReadModel(const Options& options) {
  ModelFiles model;
  ASSIGN_OR_RETURN(client::LocalFile file, client::DescribeFile(options.model));
  model.request.set_model_name(BaseName(options.model));
  SetDigest(file, *model.request.mutable_model());
  model.files.push_back(std::move(file));
  for (const auto& [role, path] : options.side_inputs) {
    RETURN_IF_ERROR(AddSideInput(role, path, model));
  }
  const auto beside = FileBeside(options.model);
  if (beside.has_value() && !options.side_inputs.contains(beside->first)) {
    RETURN_IF_ERROR(AddSideInput(beside->first, beside->second, model));
  }
  for (const std::string& text : options.input_shapes) model.request.add_input_shapes(text);
  for (const std::string& text : options.dims) model.request.add_dims(text);
  for (const std::string& text : options.constants) model.request.add_constants(text);
  return model;
}

// The proposed config of a core; NOT_FOUND where there is none.
absl::StatusOr<std::string> ConfigFor(const google::protobuf::Struct& inspection,
                                      const std::string& core) {
  const auto field = [](const google::protobuf::Struct& from, const char* name) {
    const auto found = from.fields().find(name);
    return found == from.fields().end() ? google::protobuf::Value() : found->second;
  };
  std::vector<std::string> known;
  const google::protobuf::Value verdicts = field(inspection, "verdicts");
  for (const google::protobuf::Value& verdict : verdicts.list_value().values()) {
    const google::protobuf::Value configs = field(verdict.struct_value(), "configs");
    for (const auto& [name, text] : configs.struct_value().fields()) {
      if (absl::EqualsIgnoreCase(name, core)) return text.string_value();
      known.push_back(Printable(name));
    }
  }
  std::sort(known.begin(), known.end());
  return absl::NotFoundError(absl::StrCat("there is no core '", Printable(core),
                                          "'; known: ", absl::StrJoin(known, ", ")));
}

ExitCode Show(const v1::InspectModelResponse& answer, const Options& options, Console& console) {
  for (const DiagnosticLine& line : LinesOf(answer.diagnostics())) console.Err(line);
  if (options.json) console.Out(InspectionJson(answer));
  if (!answer.has_inspection()) return kJobFailed;
  if (options.json) return kDone;
  if (options.core.empty()) {
    console.Out(absl::StrCat(answer.text(), "next: npuc-remote inspect ", Printable(options.model),
                             " -c CORE > model.yaml; npuc-remote compile model.yaml"));
    return kDone;
  }
  const absl::StatusOr<std::string> config = ConfigFor(answer.inspection(), options.core);
  if (!config.ok()) return console.Fail(config.status(), options.json);
  console.Out(absl::StripSuffix(*config, "\n"));
  return kDone;
}

}  // namespace

ExitCode RunInspect(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<ModelFiles> model = ReadModel(options);
  if (!model.ok()) return console.Fail(model.status(), options.json);
  const absl::StatusOr<v1::InspectModelResponse> answer =
      client.InspectModel(model->request, model->files, [&console](int64_t done, int64_t total) {
        console.progress().Show("uploading",
                                absl::StrCat(HumanBytes(done), " of ", HumanBytes(total)));
      });
  console.progress().Clear();
  if (!answer.ok()) return console.Fail(answer.status(), options.json);
  return Show(*answer, options, console);
}

}  // namespace npuc::remote
