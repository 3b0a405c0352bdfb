#include "server/executor/inspections.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cache/keys.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/inspect_files.h"
#include "server/executor/lifecycle.h"
#include "server/executor/submission.h"
#include "server/jobs/service_error.h"

namespace npuc::executor {
namespace {

constexpr absl::Duration kBusyDelay = absl::Seconds(1);

void CheckFile(jobs::FieldChecker& check, const std::string& field, const base::InputFile& file) {
  if (!cache::IsValidSha256(file.sha256)) {
    check.Add(
        absl::StrCat(field, ".sha256"),
        absl::StrCat("'", Printable(file.sha256, 80), "' is not 64 lower-case hexadecimal digits"));
  }
  if (file.name.empty() || file.name.size() > kMaxNameBytes) {
    check.Add(absl::StrCat(field, " name"), absl::StrCat("has ", file.name.size(), " bytes, 1 to ",
                                                         kMaxNameBytes, " are allowed"));
  }
  if (file.role.size() > kMaxNameBytes) check.Add(absl::StrCat(field, ".role"), "is too long");
}

void CheckStated(jobs::FieldChecker& check, const char* field,
                 const std::vector<std::string>& texts) {
  if (texts.size() > kMaxStatedTexts) {
    check.Add(field,
              absl::StrCat(texts.size(), " entries, at most ", kMaxStatedTexts, " are allowed"));
    return;
  }
  for (const std::string& text : texts) {
    if (text.size() <= kMaxStatedBytes) continue;
    check.Add(field, absl::StrCat("an entry has ", text.size(), " bytes, at most ", kMaxStatedBytes,
                                  " are allowed"));
  }
}

absl::Status CheckFields(const InspectionRequest& request) {
  jobs::FieldChecker check;
  CheckFile(check, "model", request.model);
  if (request.side_inputs.size() > kMaxSideInputs) {
    check.Add("side_inputs", absl::StrCat(request.side_inputs.size(), " entries, at most ",
                                          kMaxSideInputs, " are allowed"));
    return check.ToStatus();
  }
  std::set<std::string> roles = {base::kModelRole};
  for (size_t i = 0; i < request.side_inputs.size(); ++i) {
    const base::InputFile& side = request.side_inputs[i];
    const std::string field = absl::StrCat("side_inputs[", i, "]");
    CheckFile(check, field, side);
    if (side.role.empty() || !roles.insert(side.role).second) {
      check.Add(absl::StrCat(field, ".role"),
                absl::StrCat("'", Printable(side.role, 80), "' is empty or given twice"));
    }
  }
  CheckStated(check, "input_shapes", request.stated.shapes);
  CheckStated(check, "dims", request.stated.dims);
  CheckStated(check, "constants", request.stated.constants);
  return check.ToStatus();
}

absl::Status Busy(absl::string_view why) {
  return jobs::ServiceError(absl::StatusCode::kResourceExhausted, why,
                            {.reason = "SERVER_BUSY", .retry_delay = kBusyDelay});
}

// Only asked whether to stop: what an inspection logs is of no use to anybody.
class StopEvents : public worker::WorkerEvents {
 public:
  explicit StopEvents(const std::function<bool()>& is_stopping) : is_stopping_(is_stopping) {}
  bool IsCancelled() override { return is_stopping_ != nullptr && is_stopping_(); }

 private:
  const std::function<bool()>& is_stopping_;
};

absl::Status TooMuch(absl::string_view why) {
  return jobs::ServiceError(absl::StatusCode::kFailedPrecondition,
                            absl::StrCat("the model takes more than an inspection may: ", why,
                                         "; submit it for one core, a job may take more"),
                            {.reason = "INSPECTION_LIMIT"});
}

absl::Status ErrorOf(const worker::WorkerOutcome& outcome) {
  using Kind = worker::WorkerOutcome::Kind;
  switch (outcome.kind) {
    case Kind::kLimit:
      return TooMuch(outcome.text);
    case Kind::kCancelled:
      return Lifecycle::Draining();
    case Kind::kLost:
    case Kind::kInterrupted:
      return jobs::ServiceError(absl::StatusCode::kUnavailable, outcome.text,
                                {.reason = "WORKER_LOST", .retry_delay = kBusyDelay});
    default:
      return absl::InternalError(absl::StrCat("the model cannot be inspected: ", outcome.text));
  }
}

// The artifact's bytes; what a worker sends is no more trusted than the model.
absl::StatusOr<std::string> TextOf(const worker::WorkerOutcome& outcome, absl::string_view name) {
  for (const worker::WorkerArtifact& artifact : outcome.artifacts) {
    if (artifact.name != name) continue;
    if (artifact.bytes->size() > kMaxInspectionBytes) {
      return TooMuch(absl::StrCat("its description has ", artifact.bytes->size(), " of ",
                                  kMaxInspectionBytes, " bytes"));
    }
    return *artifact.bytes;
  }
  return absl::InternalError(absl::StrCat("the worker made no ", name));
}

// The names of a model may hold anything.
std::string PrintableLines(absl::string_view text) {
  std::string lines;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    absl::StrAppend(&lines, Printable(line, kMaxInspectionBytes), "\n");
  }
  return lines;
}

}  // namespace

// One of the places for inspections, given back at its end.
class Inspections::Place {
 public:
  static absl::StatusOr<std::unique_ptr<Place>> Take(Inspections& all, const std::string& tenant) {
    const MutexLock lock(all.mutex_);
    if (all.tenants_.contains(tenant)) {
      return Busy("another model of yours is being inspected; try again later");
    }
    if (all.tenants_.size() >= kMaxInspections) {
      return Busy("other models are being inspected; try again later");
    }
    all.tenants_.insert(tenant);
    return std::unique_ptr<Place>(new Place(all, tenant, absl::StrCat("inspection.", all.next_++)));
  }
  ~Place() {
    const MutexLock lock(all_.mutex_);
    all_.tenants_.erase(tenant_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const std::string& run_id() const { return run_id_; }

 private:
  Place(Inspections& all, std::string tenant, std::string run_id)
      : all_(all), tenant_(std::move(tenant)), run_id_(std::move(run_id)) {}

  Inspections& all_;
  const std::string tenant_;
  const std::string run_id_;
};

absl::Status Inspections::AcquireInputs(const InspectionRequest& request, worker::WorkerJob& job,
                                        std::vector<cache::BlobRef>& held) {
  std::vector<base::InputFile> files = {request.model};
  files.front().role = base::kModelRole;
  files.insert(files.end(), request.side_inputs.begin(), request.side_inputs.end());
  jobs::ErrorDetails missing{.reason = "BLOB_MISSING"};
  for (base::InputFile& file : files) {
    auto blob = inputs_->Acquire(request.tenant, file.sha256);
    if (!blob.ok() && !absl::IsNotFound(blob.status())) return blob.status();
    if (!blob.ok() || blob->info.size_bytes != file.size_bytes) {
      missing.precondition_violations.push_back(
          {"BLOB_MISSING", file.sha256,
           absl::StrCat(file.role, " of ", file.size_bytes,
                        " bytes is not uploaded; upload it with UploadBlob")});
      continue;
    }
    job.inputs.push_back({.file = std::move(file), .path = blob->path});
    held.push_back(*std::move(blob));
  }
  if (missing.precondition_violations.empty()) return absl::OkStatus();
  return jobs::ServiceError(absl::StatusCode::kFailedPrecondition,
                            absl::StrCat(missing.precondition_violations.size(), " of ",
                                         files.size(), " blobs are not uploaded"),
                            missing);
}

absl::StatusOr<worker::WorkerOutcome> Inspections::RunWorker(worker::WorkerJob job) {
  job.job_folder = absl::StrCat(options_.work_dir, "/", job.run_id);
  job.limits = options_.limits;
  const absl::Cleanup clean = [folder = job.job_folder] {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  };
  StopEvents events(options_.is_stopping);
  absl::StatusOr<worker::WorkerOutcome> outcome = workers_->Run(job, events);
  if (outcome.ok() || !worker::IsHostTrouble(outcome.status())) return outcome;
  return jobs::ServiceError(absl::StatusCode::kUnavailable, outcome.status().message(),
                            {.reason = "WORKER_LOST", .retry_delay = kBusyDelay});
}

absl::StatusOr<Inspection> Inspections::Run(const InspectionRequest& request) {
  RETURN_IF_ERROR(CheckFields(request));
  ASSIGN_OR_RETURN(const std::unique_ptr<Place> place, Place::Take(*this, request.tenant));
  worker::WorkerJob job;
  job.run_id = place->run_id();
  job.inspection = request.stated;
  std::vector<cache::BlobRef> held;
  RETURN_IF_ERROR(AcquireInputs(request, job, held));
  ASSIGN_OR_RETURN(const worker::WorkerOutcome outcome, RunWorker(std::move(job)));
  Inspection inspection;
  inspection.diagnostics = base::ToJobDiagnostics(outcome.diagnostics);
  if (outcome.kind == worker::WorkerOutcome::Kind::kSucceeded) {
    inspection.is_model = true;
    ASSIGN_OR_RETURN(inspection.json, TextOf(outcome, kInspectionJson));
    ASSIGN_OR_RETURN(const std::string text, TextOf(outcome, kInspectionText));
    inspection.text = PrintableLines(text);
    return inspection;
  }
  if (outcome.kind != worker::WorkerOutcome::Kind::kFailed) return ErrorOf(outcome);
  if (!inspection.diagnostics.empty()) return inspection;
  if (outcome.code != absl::StatusCode::kInvalidArgument) return ErrorOf(outcome);
  jobs::FieldChecker check;
  check.Add("stated", outcome.text);
  return check.ToStatus();
}

}  // namespace npuc::executor
