#include "server/executor/cache_inputs.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::executor {

absl::StatusOr<cache::CacheKey> ResultKey(absl::string_view scope, const jobs::JobSpec& spec,
                                          const CompileOptions& options,
                                          absl::string_view compiler_build_id) {
  std::vector<std::string> settings = {CanonicalOptions(options)};
  if (spec.model_info_time_seconds.has_value()) {
    settings.push_back(absl::StrCat(*spec.model_info_time_seconds));
  }
  const base::InputFile& model = spec.inputs.front();
  cache::CacheKeyParts parts{.scope = std::string(scope),
                             .model_md5 = model.md5,
                             .model_bytes = model.size_bytes,
                             .model_sha256 = model.sha256,
                             .options_sha256 = cache::Sha256OfParts(settings),
                             .side_inputs = {},
                             .compiler_build_id = std::string(compiler_build_id)};
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    parts.side_inputs.push_back({spec.inputs[i].role, spec.inputs[i].sha256});
  }
  return cache::CacheKey::Make(parts);
}

std::vector<jobs::JobArtifact> ToJobArtifacts(const std::vector<cache::ArtifactInfo>& artifacts) {
  std::vector<jobs::JobArtifact> out;
  for (const cache::ArtifactInfo& info : artifacts)
    out.push_back({info.name, info.size_bytes, info.sha256});
  return out;
}

}  // namespace npuc::executor
