#include "server/executor/cache_inputs.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/jobs/field_codec.h"

namespace npuc {

absl::StatusOr<CacheKey> ResultKey(absl::string_view scope, const JobSpec& spec,
                                   const CompileOptions& options,
                                   absl::string_view compiler_build_id) {
  FieldWriter settings;
  settings.Entry(1, CanonicalOptions(options));
  if (spec.model_info_time_seconds.has_value()) {
    settings.Entry(2, absl::StrCat(*spec.model_info_time_seconds));
  }
  const JobInput& model = spec.inputs.front();
  CacheKeyParts parts{.scope = std::string(scope),
                      .model_md5 = model.md5,
                      .model_bytes = model.size_bytes,
                      .model_sha256 = model.sha256,
                      .options_sha256 = Sha256Hex(settings.str()),
                      .side_inputs = {},
                      .compiler_build_id = std::string(compiler_build_id)};
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    parts.side_inputs.push_back({spec.inputs[i].role, spec.inputs[i].sha256});
  }
  return CacheKey::Make(parts);
}

std::string EncodeResultMetadata(const std::vector<JobDiagnostic>& diagnostics) {
  FieldWriter writer;
  for (const JobDiagnostic& diagnostic : diagnostics) {
    writer.Entry(1, EncodeDiagnostic(diagnostic));
  }
  return std::move(writer).str();
}

absl::StatusOr<std::vector<JobDiagnostic>> DecodeResultMetadata(absl::string_view bytes) {
  std::vector<JobDiagnostic> diagnostics;
  FieldReader reader(bytes);
  while (reader.Next()) {
    if (reader.tag() != 1) continue;
    ASSIGN_OR_RETURN(JobDiagnostic diagnostic, DecodeDiagnostic(reader.bytes()));
    diagnostics.push_back(std::move(diagnostic));
  }
  if (!reader.ok()) return absl::DataLossError("the metadata of a cached result is damaged");
  return diagnostics;
}

JobDiagnostic ToJobDiagnostic(const Diagnostic& diagnostic) {
  JobDiagnostic out;
  out.id = IdOf(diagnostic.kind);
  switch (diagnostic.severity()) {
    case Severity::kNote:
      out.severity = JobDiagnostic::Severity::kNote;
      break;
    case Severity::kWarning:
      out.severity = JobDiagnostic::Severity::kWarning;
      break;
    case Severity::kError:
      out.severity = JobDiagnostic::Severity::kError;
      break;
  }
  out.file = diagnostic.file;
  out.line = diagnostic.line;
  out.column = diagnostic.column;
  out.node = diagnostic.node;
  out.op = diagnostic.op;
  out.message = diagnostic.message;
  out.limit_source = diagnostic.limit_source;
  out.fix = diagnostic.fix;
  return out;
}

std::vector<JobDiagnostic> ToJobDiagnostics(const std::vector<Diagnostic>& diagnostics) {
  std::vector<JobDiagnostic> converted;
  converted.reserve(diagnostics.size());
  for (const Diagnostic& one : diagnostics) converted.push_back(ToJobDiagnostic(one));
  return converted;
}

std::vector<JobArtifact> ToJobArtifacts(const std::vector<ArtifactInfo>& artifacts) {
  std::vector<JobArtifact> out;
  for (const ArtifactInfo& info : artifacts)
    out.push_back({info.name, info.size_bytes, info.sha256});
  return out;
}

}  // namespace npuc
