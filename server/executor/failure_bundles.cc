#include "server/executor/failure_bundles.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"
#include "server/log/log.h"

namespace npuc::executor {
namespace {

namespace fs = std::filesystem;

// A folder under construction; its name is no job id, so the next one clears it away.
constexpr char kNewFolder[] = "new";
constexpr char kCauseFile[] = "cause";

absl::Status FsError(const std::error_code& error, const fs::path& path) {
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(path.string(), ": ", error.message()));
}

absl::Status WriteText(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  return out ? absl::OkStatus() : absl::InternalError(absl::StrCat("cannot write ", path.string()));
}

// Empty where it cannot be read.
std::string ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

uint64_t BytesBelow(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code none;
    if (it->is_regular_file(none)) bytes += it->file_size(none);
  }
  return bytes;
}

// The blob under another name; a copy where the file system has no hard links.
absl::Status Link(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error) return absl::OkStatus();
  error.clear();
  fs::copy_file(from, to, error);
  return FsError(error, to);
}

// Only letters, digits, '_', '-' and '.': what a client sent as a name makes no path.
std::string PlainName(const std::string& name) {
  std::string plain = name.substr(0, 64);
  for (char& c : plain) {
    const bool ok = absl::StrContains("_-.", absl::string_view(&c, 1)) || (c >= '0' && c <= '9') ||
                    (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!ok) c = '_';
  }
  return plain;
}

// Where the input lies in the bundle: under its own name, since a config may imply one file's name
// by another's; names that are taken, or are no names, get the role in front.
std::string PlaceOf(const FailureBundles::Input& input, std::set<std::string>& taken) {
  const std::string role = PlainName(input.named.role);
  std::string name = PlainName(fs::path(input.named.path).filename().string());
  if (name.find_first_not_of('.') == std::string::npos) name = absl::StrCat(role, "-", name);
  while (!taken.insert(name).second) name = absl::StrCat(role, "-", name);
  return absl::StrCat("inputs/", name);
}

// The path, where it stands alone in the line, replaced.
void ReplacePath(const std::string& from, const std::string& to, std::string& line) {
  const auto is_part = [&line](size_t at) {
    return at < line.size() && (absl::ascii_isalnum(static_cast<unsigned char>(line[at])) ||
                                absl::StrContains("_-./", absl::string_view(&line[at], 1)));
  };
  for (size_t at = line.find(from); at != std::string::npos; at = line.find(from, at)) {
    const bool is_alone = (at == 0 || !is_part(at - 1)) && !is_part(at + from.size());
    if (is_alone) line.replace(at, from.size(), to);
    at += is_alone ? to.size() : 1;
  }
}

std::string FailureJson(const FailureBundles::Failure& failure) {
  const std::string command =
      absl::StrCat("SOURCE_DATE_EPOCH=", failure.timestamp_seconds, " npuc config.yaml -o out");
  return absl::StrCat("{\"job\": ", log::JsonString(failure.job_id),
                      ",\n \"build\": ", log::JsonString(failure.build_id),
                      ",\n \"stage\": ", log::JsonString(failure.stage),
                      ",\n \"reason\": ", log::JsonString(failure.reason),
                      ",\n \"command\": ", log::JsonString(command), "}\n");
}

// The tenant, and what went wrong without what differs from job to job: names in quotes and digits.
std::string CauseText(const FailureBundles::Failure& failure) {
  std::string reason;
  bool quoted = false;
  for (const char c : failure.reason) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && !absl::ascii_isdigit(static_cast<unsigned char>(c))) reason.push_back(c);
  }
  return absl::StrCat(failure.tenant, "\n", failure.stage, ": ", reason, "\n");
}

std::string TenantOf(const std::string& cause) { return cause.substr(0, cause.find('\n')); }

}  // namespace

// Removes the one of the same cause, then others until those that are left, the new one among them,
// are within the limits.
absl::Status FailureBundles::MakeRoom(const std::string& cause) const {
  struct Kept {
    fs::file_time_type time;
    fs::path path;
    std::string cause;
    uint64_t bytes = 0;
  };
  std::vector<Kept> kept;
  uint64_t sum = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.dir, error)) {
    std::error_code gone;
    if (entry.path().filename() == kNewFolder) {
      sum += BytesBelow(entry.path());
      continue;
    }
    kept.push_back({entry.last_write_time(gone), entry.path(), ReadText(entry.path() / kCauseFile),
                    BytesBelow(entry.path())});
    sum += kept.back().bytes;
  }
  RETURN_IF_ERROR(FsError(error, options_.dir));
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
    return std::tie(a.time, a.path) < std::tie(b.time, b.path);
  });
  const auto remove = [&](std::vector<Kept>::iterator victim) {
    fs::remove_all(victim->path, error);
    RETURN_IF_ERROR(FsError(error, victim->path));
    sum -= victim->bytes;
    kept.erase(victim);
    return absl::OkStatus();
  };
  const auto same = std::find_if(kept.begin(), kept.end(),
                                 [&](const Kept& bundle) { return bundle.cause == cause; });
  if (same != kept.end()) RETURN_IF_ERROR(remove(same));
  while (!kept.empty() && (kept.size() >= options_.max_bundles || sum > options_.max_bytes)) {
    std::map<std::string, size_t> of_tenant = {{TenantOf(cause), 1}};
    for (const Kept& bundle : kept) ++of_tenant[TenantOf(bundle.cause)];
    const auto has_less = [&](const Kept& a, const Kept& b) {
      return of_tenant[TenantOf(a.cause)] < of_tenant[TenantOf(b.cause)];
    };
    // The first of the largest, which is its tenant's oldest.
    RETURN_IF_ERROR(remove(std::max_element(kept.begin(), kept.end(), has_less)));
  }
  return absl::OkStatus();
}

absl::Status FailureBundles::Keep(const Failure& failure) {
  uint64_t bytes = failure.config_text.size() + failure.log.size();
  std::error_code error;
  for (const Input& input : failure.inputs) {
    bytes += fs::file_size(input.blob_path, error);
    RETURN_IF_ERROR(FsError(error, input.blob_path));
  }
  if (bytes > options_.max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it has ", bytes, " bytes, at most ", options_.max_bytes, " are kept"));
  }
  const MutexLock lock(mutex_);
  const fs::path dir = options_.dir;
  const fs::path folder = dir / kNewFolder;
  fs::remove_all(folder, error);
  fs::create_directories(folder / "inputs", error);
  RETURN_IF_ERROR(FsError(error, folder));
  fs::permissions(dir, fs::perms::owner_all, error);  // models are their tenants' alone
  std::vector<std::string> lines = absl::StrSplit(failure.config_text, '\n');
  std::set<std::string> taken;
  for (const Input& input : failure.inputs) {
    const std::string name = PlaceOf(input, taken);
    RETURN_IF_ERROR(Link(input.blob_path, folder / name));
    const auto line = static_cast<size_t>(input.named.line) - 1;  // a huge one where it is 0
    if (line < lines.size() && !input.named.path.empty()) {
      ReplacePath(input.named.path, name, lines[line]);
    }
  }
  RETURN_IF_ERROR(WriteText(folder / "config.yaml", absl::StrJoin(lines, "\n")));
  RETURN_IF_ERROR(WriteText(folder / "compile.log", failure.log));
  RETURN_IF_ERROR(WriteText(folder / "failure.json", FailureJson(failure)));
  const std::string cause = CauseText(failure);
  RETURN_IF_ERROR(WriteText(folder / kCauseFile, cause));
  RETURN_IF_ERROR(MakeRoom(cause));
  fs::remove_all(dir / failure.job_id, error);
  fs::rename(folder, dir / failure.job_id, error);
  return FsError(error, folder);
}

}  // namespace npuc::executor
