#include "server/backup/snapshot.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"

namespace npuc::backup {
namespace {

namespace fs = std::filesystem;

// Never the name of an answer.
constexpr char kPartEnding[] = ".part";

absl::Status CopySmallParts(const std::string& data_dir, const std::string& folder) {
  for (const char* part : kSmallParts) {
    const fs::path from = fs::path(data_dir) / part;
    std::error_code error;
    if (!fs::exists(from, error)) continue;
    fs::copy(from, fs::path(folder) / part, fs::copy_options::recursive, error);
    if (error) {
      return absl::InternalError(
          absl::StrCat("cannot copy ", from.string(), ": ", error.message()));
    }
  }
  return absl::OkStatus();
}

bool IsRequestName(absl::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-';
  });
}

absl::Time TimeOf(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return absl::InfiniteFuture();
  return absl::FromChrono(std::chrono::file_clock::to_sys(time));
}

}  // namespace

std::string SnapshotsFolder(const std::string& data_dir) { return data_dir + "/snapshots"; }

absl::Status TakeSnapshot(const OpenStores& stores, const std::string& data_dir,
                          const std::string& folder) {
  if (stores.jobs == nullptr) {
    return absl::FailedPreconditionError(
        "the jobs of a cluster are in PostgreSQL; back that up (deploy/OPERATIONS.md, "
        "\"Cluster\")");
  }
  RETURN_IF_ERROR(cache::MakeFolder(folder));
  RETURN_IF_ERROR(stores.jobs->Checkpoint(folder + "/jobs"));
  RETURN_IF_ERROR(stores.blobs->LinkInto(folder + "/blobs"));
  RETURN_IF_ERROR(stores.artifacts->Checkpoint(folder + "/artifacts"));
  return CopySmallParts(data_dir, folder);
}

absl::Status SnapshotDesk::Open() {
  const std::string folder = SnapshotsFolder(data_dir_);
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) return absl::InternalError(absl::StrCat(folder, ": ", error.message()));
  return cache::MakeFolder(folder);
}

std::vector<SnapshotDesk::Answer> SnapshotDesk::Serve(absl::Time now) {
  const std::string folder = SnapshotsFolder(data_dir_);
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string file = it->path().filename().string();
    absl::string_view name = file;
    if (now - TimeOf(it->path()) > kMaxAge) {
      std::error_code ignored;
      fs::remove_all(it->path(), ignored);
    } else if (absl::ConsumeSuffix(&name, kRequestEnding)) {
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  if (names.size() > kMaxRequests) names.resize(kMaxRequests);
  std::vector<Answer> answers;
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    fs::remove(path + kRequestEnding, error);
    if (!IsRequestName(name)) continue;
    absl::Status status = TakeSnapshot(stores_, data_dir_, path + kPartEnding);
    if (status.ok()) {
      fs::rename(path + kPartEnding, path, error);
      if (error) status = absl::InternalError(error.message());
    }
    if (!status.ok()) {
      fs::remove_all(path + kPartEnding, error);
      std::ofstream(path + kFailedEnding) << status.message();
    }
    answers.push_back({name, std::move(status)});
  }
  return answers;
}

}  // namespace npuc::backup
