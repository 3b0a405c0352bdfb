#include "client/npuc_remote/job_input.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/folder_archive.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"

namespace npuc::remote {
namespace {

// The wire's limit on names that only diagnostics use.
constexpr size_t kMaxNameBytes = 255;

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// `path` seen from the config's folder.
std::string Beside(const std::string& config, const std::string& path) {
  if (config == "-") return path;
  return (std::filesystem::path(config).parent_path() / path).string();
}

// The name itself where it is short enough, else its last part.
std::string ShownName(const std::string& path) {
  if (path.size() <= kMaxNameBytes) return path;
  const std::string base = std::filesystem::path(path).filename().string();
  return base.substr(0, kMaxNameBytes);
}

void AddUnreadable(const absl::Status& status, const std::string& file, int line,
                   const std::string& fix, Diagnostics& diagnostics) {
  diagnostics.Add({.kind = DiagnosticKind::kFileUnreadable,
                   .message = Printable(status.message(), 2 * kMaxNameBytes),
                   .file = file,
                   .line = line,
                   .fix = fix});
}

void SetDuration(absl::Duration span, google::protobuf::Duration& wire) {
  wire.set_seconds(absl::IDivDuration(span, absl::Seconds(1), &span));
  wire.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(span)));
}

// The service builds, whatever else a .cfg asks for.
void CheckTask(const CfgTask& task, const std::string& shown, Diagnostics& diagnostics) {
  if (task.profiles) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigNoEffect,
                     .message = "profile changes nothing: the service writes no graph.json",
                     .file = shown,
                     .fix = "build by aipubuild where a profile is wanted"});
  }
  if (task.kind == CfgTask::Kind::kRun) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigNoEffect,
                     .message = "mode = run changes nothing: the service builds, and runs nothing",
                     .file = shown,
                     .fix = "run what it builds by npuc run"});
  } else if (task.kind != CfgTask::Kind::kBuild) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigValueNotAllowed,
                     .message = "a .cfg with [Common] alone asks for an IR; the service builds",
                     .file = shown,
                     .fix = "write the IR by aipuparse or aipuopt, and build that"});
  }
}

}  // namespace

void SetDigest(const client::LocalFile& file, v1::BlobDigest& digest) {
  digest.set_sha256(file.sha256);
  digest.set_size_bytes(file.size_bytes);
}

absl::Status AddOptions(const Options& options, v1::CompileJobSpec& spec) {
  spec.set_priority(options.priority);
  spec.set_no_cache(options.no_cache);
  for (const auto& [key, value] : options.labels) (*spec.mutable_labels())[key] = value;
  if (options.timeout.has_value()) SetDuration(*options.timeout, *spec.mutable_timeout());
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr || *epoch == '\0') return absl::OkStatus();
  int64_t seconds = 0;
  constexpr int64_t kMaxSeconds = 253402300799;  // the end of the year 9999
  if (!absl::SimpleAtoi(epoch, &seconds) || seconds < 0 || seconds > kMaxSeconds) {
    return absl::InvalidArgumentError(absl::StrCat("SOURCE_DATE_EPOCH is '", Printable(epoch),
                                                   "'; it must be seconds since 1970, 0 to ",
                                                   kMaxSeconds));
  }
  spec.mutable_model_info_time()->set_seconds(seconds);
  return absl::OkStatus();
}

absl::StatusOr<JobInput> ReadJobInput(const std::string& path, Diagnostics& diagnostics) {
  const std::string shown = path == "-" ? "standard input" : ShownName(path);
  absl::StatusOr<std::string> text = client::ReadWholeFile(path, kMaxConfigBytes);
  if (!text.ok()) {
    AddUnreadable(text.status(), "", 0, "name a YAML config file", diagnostics);
    return diagnostics.ToStatus();
  }
  ASSIGN_OR_RETURN(const ParsedConfig config, ParseConfig(*text, shown, diagnostics));
  CheckTask(config.task, shown, diagnostics);
  JobInput input;
  input.spec.set_config_text(*std::move(text));
  input.spec.set_config_name(shown);
  for (const ConfigFile& file : config.files) {
    const std::string from = Beside(path, file.path);
    absl::StatusOr<client::LocalFile> described =
        IsFolder(from) ? client::DescribeFolder(from) : client::DescribeFile(from);
    if (!described.ok()) {
      AddUnreadable(described.status(), shown, file.line,
                    "paths are relative to the folder of the config", diagnostics);
      continue;
    }
    if (file.role == "MODEL_FILE") {
      SetDigest(*described, *input.spec.mutable_model());
    } else {
      v1::SideInput* side_input = input.spec.add_side_inputs();
      side_input->set_role(file.role);
      side_input->set_name(ShownName(file.path));
      SetDigest(*described, *side_input->mutable_digest());
    }
    input.files.push_back(*std::move(described));
  }
  RETURN_IF_ERROR(diagnostics.ToStatus());
  input.output_folder = FolderOf(Beside(path, config.output_path));
  return input;
}

}  // namespace npuc::remote
