#include "server/executor/result_storing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/artifact_name.h"
#include "compiler_core/base/status.h"
#include "server/executor/cache_inputs.h"

namespace npuc::executor {
namespace {

// The run's own thread is one of them, and mostly waits.
constexpr int kThreads = 3;
constexpr char kLogArtifact[] = "compile.log";

}  // namespace

std::unique_ptr<HelperThreads> HelperPool::Take() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<HelperThreads>(kThreads, begin_);
  std::unique_ptr<HelperThreads> helpers = std::move(idle_.back());
  idle_.pop_back();
  return helpers;
}

void HelperPool::Return(std::unique_ptr<HelperThreads> helpers) {
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(helpers));
}

ResultStoring::ResultStoring(cache::ResultCache* cache, HelperPool* pool, cache::CacheKey key,
                             std::string output_file, PreparedArtifacts::Check check)
    : cache_(cache),
      pool_(pool),
      key_(std::move(key)),
      output_file_(std::move(output_file)),
      helpers_(pool->Take()) {
  prepared_.emplace(std::move(check), *helpers_);
}

ResultStoring::~ResultStoring() {
  storing_.reset();
  prepared_.reset();
  pool_->Return(std::move(helpers_));
}

void ResultStoring::Begin(const std::string& log, std::vector<base::JobDiagnostic> diagnostics) {
  begun_log_ = log;
  storing_.emplace(helpers_->Start([this, metadata = jobs::EncodeResultMetadata(diagnostics)] {
    stored_ = Store(begun_log_, metadata);
  }));
}

absl::StatusOr<std::vector<cache::ArtifactInfo>> ResultStoring::Store(const std::string& log,
                                                                      const std::string& metadata) {
  std::vector<cache::ArtifactView> views = prepared_->Packed();
  bool has_output = false;
  bool has_log = false;
  for (const cache::ArtifactView& artifact : views) {
    if (!IsValidArtifactName(artifact.name)) {
      return absl::InternalError(
          absl::StrCat("artifact name '", Printable(artifact.name), "' is not allowed"));
    }
    has_output = has_output || artifact.name == output_file_;
    has_log = has_log || artifact.name == kLogArtifact;
  }
  if (!has_output) {
    return absl::InternalError(absl::StrCat("the compile made no ", Printable(output_file_)));
  }
  if (!has_log) views.push_back({kLogArtifact, log});
  return cache_->Store(key_, views, metadata, [this] { return prepared_->Checked(); });
}

absl::Status ResultStoring::Finish(const std::string& log, jobs::JobResult& result) {
  if (storing_.has_value()) storing_->Wait();
  // A last line of the log may have come since.
  if (!storing_.has_value() || begun_log_ != log) {
    stored_ = Store(log, jobs::EncodeResultMetadata(result.diagnostics));
  }
  storing_.reset();
  RETURN_IF_ERROR(stored_.status());
  result.artifacts = ToJobArtifacts(*stored_);
  result.cache_key = key_.ToString();
  return absl::OkStatus();
}

}  // namespace npuc::executor
