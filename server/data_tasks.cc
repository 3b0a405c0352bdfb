#include "server/data_tasks.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/pipeline/compile.h"
#include "server/auth/authenticator.h"
#include "server/backup/backup.h"
#include "server/job_home.h"
#include "server/startup.h"

namespace npuc::daemon {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int Fail(const absl::Status& status) {
  std::cerr << "npucd: " << status.message() << "\n";
  return kFailed;
}

int ReportCopied(const absl::StatusOr<backup::CopiedFiles>& copied, const std::string& what,
                 const std::string& folder) {
  if (!copied.ok()) return Fail(copied.status());
  std::cout << what << " " << folder << ": " << copied->files << " files, " << copied->bytes
            << " bytes\n";
  return kDone;
}

int Check(const std::string& data_dir) {
  const absl::StatusOr<backup::CheckReport> report =
      backup::CheckData(data_dir, [](absl::string_view line) { std::cout << line << "\n"; });
  if (!report.ok()) return Fail(report.status());
  std::cout << "checked " << data_dir << ": " << report->jobs << " jobs (" << report->live_jobs
            << " not ended, " << report->events << " events), " << report->blobs << " uploads, "
            << report->results << " results; " << report->mended << " damaged and removed, "
            << report->beyond_repair << " beyond repair\n";
  return report->beyond_repair == 0 ? kDone : kFailed;
}

int Migrate(const Flags& flags) {
  if (const absl::Status migrated = MigrateCluster(flags); !migrated.ok()) return Fail(migrated);
  std::cout << "the tables of npucd are there\n";
  return kDone;
}

// The files that the flags name; the flags themselves are right.
int CheckConfig(const Flags& flags) {
  std::vector<std::string> problems;
  if (!flags.tenants.empty()) {
    const auto read = auth::Authenticator::FromFile(flags.tenants, [] { return absl::Now(); });
    if (!read.ok()) problems.emplace_back(read.status().message());
  }
  for (const std::string& path : {flags.tls_cert, flags.tls_key, flags.client_ca,
                                  flags.oidc.ca_file, flags.cluster_content_ca_file}) {
    if (!path.empty() && access(path.c_str(), R_OK) != 0) {
      problems.push_back(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
    }
  }
  const absl::Status headers = ReadOtlpHeaders(flags.otlp_headers_file).status();
  if (!headers.ok()) problems.emplace_back(headers.message());
  const absl::Status secret = ReadOidcSettings(flags.oidc, flags.oidc_secret_file).status();
  if (!secret.ok()) problems.emplace_back(secret.message());
  if (!flags.cluster_content_credentials_file.empty()) {
    const absl::Status credentials =
        ReadS3Credentials(flags.cluster_content_credentials_file).status();
    if (!credentials.ok()) problems.emplace_back(credentials.message());
  }
  for (const std::string& problem : problems) std::cerr << "npucd: " << problem << "\n";
  if (!problems.empty()) return kWrongUsage;
  std::cout << "npucd: the options" << (flags.tenants.empty() ? "" : " and the tenants file")
            << " would do\n";
  return kDone;
}

}  // namespace

int RunDataTask(const Flags& flags) {
  if (flags.migrate) return Migrate(flags);
  if (flags.check_config) return CheckConfig(flags);
  if (!flags.check.empty()) return Check(flags.check);
  if (!flags.restore.empty()) {
    return ReportCopied(backup::RestoreBackup(flags.restore, flags.data_dir), "restored",
                        flags.data_dir);
  }
  return ReportCopied(
      backup::WriteBackup({.data_dir = flags.data_dir, .version = std::string(CompilerVersion())},
                          flags.backup),
      "backed up into", flags.backup);
}

}  // namespace npuc::daemon
