#include "server/log/audit_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/status.h"
#include "server/log/log.h"

namespace npuc::log {
namespace {

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E6SZ";
// Lines are in the order in which they were written, and the clock may have been set back.
constexpr absl::Duration kClockStep = absl::Hours(1);

struct Field {
  const char* key;
  std::string AuditEntry::*value;
  std::string AuditQuery::*wanted;  // null: nobody asks for it
};
constexpr Field kFields[] = {{"action", &AuditEntry::action, &AuditQuery::action},
                             {"node", &AuditEntry::node, &AuditQuery::node},
                             {"identity", &AuditEntry::identity, &AuditQuery::identity},
                             {"tenant", &AuditEntry::tenant, &AuditQuery::tenant},
                             {"peer", &AuditEntry::peer, nullptr},
                             {"object", &AuditEntry::object, &AuditQuery::object},
                             {"result", &AuditEntry::result, &AuditQuery::result},
                             {"detail", &AuditEntry::detail, nullptr}};

// nullopt: it is no whole line, as a power cut may leave one.
std::optional<AuditEntry> ParseLine(absl::string_view line, const std::string& node) {
  JsonNode root;
  JsonError error;
  if (!ParseJsonTree(line, {}, root, error) || root.kind != JsonNode::Kind::kObject) {
    return std::nullopt;
  }
  AuditEntry entry{.node = node};
  bool has_time = false;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    const std::string& key = root.keys[i].name;
    const JsonNode& value = root.items[i];
    if (key == "time") {
      has_time = absl::ParseTime(kTimeFormat, value.text, &entry.time, nullptr);
    } else if (key == "left_out") {
      entry.left_out = static_cast<uint64_t>(value.integer);
    } else {
      const auto* field = std::find_if(std::begin(kFields), std::end(kFields),
                                       [&](const Field& one) { return key == one.key; });
      if (field != std::end(kFields)) entry.*field->value = value.text;
    }
  }
  if (!has_time) return std::nullopt;
  return entry;
}

// The lines of a file before `end`, the last first.
class LinesBackward {
 public:
  LinesBackward(int fd, uint64_t end) : fd_(fd), begin_(end), end_(end) {}

  // nullopt: the file's begin. `offset`: where the line begins.
  std::optional<std::string> Next(uint64_t& offset) {
    while (true) {
      // The last byte is the end of the line itself.
      const size_t last =
          text_.size() < 2 ? std::string::npos : text_.rfind('\n', text_.size() - 2);
      if (last != std::string::npos || begin_ == 0) {
        const size_t start = last == std::string::npos ? 0 : last + 1;
        if (start == text_.size()) return std::nullopt;
        std::string line = text_.substr(start);
        text_.resize(start);
        offset = begin_ + start;
        if (line.back() == '\n') line.pop_back();
        return line;
      }
      if (!ReadBlock()) return std::nullopt;
    }
  }
  uint64_t read_bytes() const { return end_ - begin_; }

 private:
  bool ReadBlock() {
    constexpr uint64_t kBlock = uint64_t{256} << 10;
    const uint64_t count = std::min(begin_, kBlock);
    std::string block(count, '\0');
    const ssize_t got = pread(fd_, block.data(), count, static_cast<off_t>(begin_ - count));
    if (got != static_cast<ssize_t>(count)) return false;
    text_ = block + text_;
    begin_ -= count;
    return true;
  }

  const int fd_;
  uint64_t begin_;  // where text_ begins in the file
  const uint64_t end_;
  std::string text_;
};

// A place in the files: lines before an offset of the file with that inode.
struct Place {
  uint64_t inode = 0;
  uint64_t offset = 0;
};

absl::StatusOr<std::optional<Place>> ParseToken(const std::string& token) {
  if (token.empty()) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(token, '-');
  Place place;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &place.inode) &&
      absl::SimpleAtoi(parts[1], &place.offset)) {
    return place;
  }
  return absl::InvalidArgumentError("the page token is none of the audit's");
}

}  // namespace

bool AuditQuery::Takes(const AuditEntry& entry) const {
  if (entry.time < from || entry.time >= to) return false;
  return std::all_of(std::begin(kFields), std::end(kFields), [&](const Field& field) {
    return field.wanted == nullptr || (this->*field.wanted).empty() ||
           this->*field.wanted == entry.*field.value;
  });
}

absl::StatusOr<std::unique_ptr<AuditFile>> AuditFile::Open(AuditFileOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.dir, error);
  auto file = std::unique_ptr<AuditFile>(new AuditFile(std::move(options)));
  const MutexLock lock(file->mutex_);
  RETURN_IF_ERROR(file->OpenNewest());
  return file;
}

AuditFile::~AuditFile() {
  const MutexLock lock(mutex_);
  if (fd_ >= 0) close(fd_);
}

std::string AuditFile::PathOf(int number) const {
  return number == 0 ? options_.dir + "/audit.log"
                     : absl::StrCat(options_.dir, "/audit.", number, ".log");
}

absl::Status AuditFile::OpenNewest() {
  const std::string path = PathOf(0);
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat info = {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot append to the audit log ", path, ": ", strerror(errno)));
  }
  bytes_ = static_cast<uint64_t>(info.st_size);
  return absl::OkStatus();
}

void AuditFile::Rotate() {
  for (int number = options_.files - 1; number > 0; --number) {
    std::rename(PathOf(number - 1).c_str(), PathOf(number).c_str());
  }
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string AuditFile::ToLine(const AuditEntry& entry) {
  std::string line = absl::StrCat(
      "{\"time\":\"", absl::FormatTime(kTimeFormat, entry.time, absl::UTCTimeZone()), "\"");
  for (const Field& field : kFields) {
    const std::string& value = entry.*field.value;
    if (!value.empty()) absl::StrAppend(&line, ",\"", field.key, "\":", JsonString(value));
  }
  if (entry.left_out > 0) absl::StrAppend(&line, ",\"left_out\":", entry.left_out);
  return line + "}";
}

absl::Status AuditFile::Append(uint64_t /*first_number*/, absl::Span<const AuditEntry> entries) {
  const MutexLock lock(mutex_);
  for (const AuditEntry& entry : entries) {
    const std::string line = ToLine(entry) + "\n";
    if (fd_ >= 0 && bytes_ + line.size() > options_.max_bytes) Rotate();
    if (fd_ < 0) RETURN_IF_ERROR(OpenNewest());
    // One write: a line is whole, and appended whatever other process has the file.
    const ssize_t written = write(fd_, line.data(), line.size());
    bytes_ += line.size();
    if (written != static_cast<ssize_t>(line.size())) {
      return absl::UnavailableError(absl::StrCat("cannot append to ", PathOf(0)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AuditPage> AuditFile::Find(const AuditQuery& query) {
  ASSIGN_OR_RETURN(std::optional<Place> place, ParseToken(query.page_token));
  AuditPage page;
  uint64_t looked = 0;
  for (int number = 0; number < options_.files; ++number) {
    const int fd = open(PathOf(number).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    const auto closes = std::unique_ptr<const int, void (*)(const int*)>(
        &fd, [](const int* open_fd) { close(*open_fd); });
    struct stat info = {};
    if (fstat(fd, &info) != 0) continue;
    const auto inode = static_cast<uint64_t>(info.st_ino);
    auto end = static_cast<uint64_t>(info.st_size);
    if (place.has_value()) {
      // Newer than the page before.
      if (inode != place->inode) continue;
      end = std::min(end, place->offset);
      place.reset();
    }
    LinesBackward lines(fd, end);
    uint64_t offset = end;
    while (true) {
      if (page.entries.size() >= query.limit ||
          looked + lines.read_bytes() > options_.max_look_bytes) {
        page.next_page_token = absl::StrCat(inode, "-", offset);
        return page;
      }
      const std::optional<std::string> line = lines.Next(offset);
      if (!line.has_value()) break;
      const std::optional<AuditEntry> entry = ParseLine(*line, options_.node);
      if (!entry.has_value()) continue;
      if (entry->time < query.from - kClockStep) return page;
      if (query.Takes(*entry)) page.entries.push_back(*entry);
    }
    looked += lines.read_bytes();
  }
  return page;
}

}  // namespace npuc::log
