#ifndef NPUC_SERVER_HTTP_STATIC_FILES_H_
#define NPUC_SERVER_HTTP_STATIC_FILES_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc::http {

// The dashboard's files, read once: what a browser asks for never becomes a path of the disk.
// Immutable; thread-safe.
class StaticFiles {
 public:
  struct File {
    std::string bytes;
    std::string gzip;  // the same, compressed; empty where that is not smaller
    std::string type;  // its media type
    std::string etag;
    bool named_by_content = false;  // it never changes under its name
  };

  // All files below `folder`, at most 256 of 16 MiB together; others are left out. Where index.html
  // is not there, a page in its place says how the dashboard is built.
  static StaticFiles Read(const std::string& folder);

  // `path` as in a URL, "/" included; null: there is none.
  const File* Find(absl::string_view path) const;
  bool has_dashboard() const { return has_dashboard_; }

 private:
  std::map<std::string, File, std::less<>> files_;
  bool has_dashboard_ = false;
};

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_STATIC_FILES_H_
