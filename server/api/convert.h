#ifndef NPUC_SERVER_API_CONVERT_H_
#define NPUC_SERVER_API_CONVERT_H_

#include <google/protobuf/struct.pb.h>

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "npuc/v1/blob.pb.h"
#include "npuc/v1/compile.pb.h"
#include "server/executor/submission.h"
#include "server/jobs/job.h"
#include "server/jobs/job_service.h"

namespace npuc::api {

// Between wire and plain types. Pure.

// INVALID_ARGUMENT: it cannot be a job's id.
absl::Status CheckJobId(absl::string_view job_id);

// INVALID_ARGUMENT only for what plain types cannot hold; Submission checks the rest.
absl::StatusOr<executor::SubmitRequest> FromProto(const v1::CreateCompileJobRequest& request);
absl::StatusOr<cache::BlobDigest> FromProto(const v1::BlobDigest& digest, absl::string_view field);

// `wait`: of a waiting job, where known. The config's text is the caller's to add.
void ToProto(const jobs::Job& job, const std::optional<jobs::JobWait>& wait, v1::CompileJob* out);
void ToProto(const jobs::JobWait& wait, v1::QueuePosition* out);
void ToProto(const jobs::JobEvent& event, v1::JobEvent* out);
void ToProto(const cache::BlobDigest& digest, v1::BlobDigest* out);
v1::JobState ToProto(jobs::JobState state);
// nullopt for a value that is no state.
std::optional<jobs::JobState> FromProto(v1::JobState state);
void ToProto(const base::JobDiagnostic& diagnostic, v1::Diagnostic* out);
// INTERNAL: it is no JSON object, or nested too deeply.
absl::Status StructOfJson(absl::string_view json, google::protobuf::Struct* out);
void ToProto(absl::Time time, google::protobuf::Timestamp* out);
absl::Time FromProto(const google::protobuf::Timestamp& time);
absl::Duration DurationOf(const google::protobuf::Duration& duration);

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_CONVERT_H_
