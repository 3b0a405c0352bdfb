#ifndef NPUC_SERVER_EXECUTOR_CACHE_INPUTS_H_
#define NPUC_SERVER_EXECUTOR_CACHE_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/artifact_cache.h"
#include "compiler_core/base/compile_options.h"
#include "server/jobs/job.h"

namespace npuc::executor {

// The name of a compile's result: all that decides its bytes. A pinned model_info time counts with
// the options, since it shows in the header; the ordinary one does not (a hit keeps the time at
// which it was made).
absl::StatusOr<cache::CacheKey> ResultKey(absl::string_view scope, const jobs::JobSpec& spec,
                                          const CompileOptions& options,
                                          absl::string_view compiler_build_id);

std::vector<jobs::JobArtifact> ToJobArtifacts(const std::vector<cache::ArtifactInfo>& artifacts);

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_CACHE_INPUTS_H_
