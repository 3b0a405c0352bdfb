#include "server/http/static_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "server/http/compress.h"

namespace npuc::http {
namespace {

constexpr size_t kMaxFiles = 256;
constexpr size_t kMaxBytes = 16 << 20;
constexpr std::pair<absl::string_view, absl::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".txt", "text/plain; charset=utf-8"},
};
constexpr char kNotBuilt[] =
    "<!doctype html><html lang=\"en\"><title>npuc</title><h1>The dashboard is not built</h1>"
    "<p>npucd serves the HTTP API under <code>/v1</code>. The page itself is made by npm, which "
    "was "
    "not there, or had no network, when npucd was built. Install nodejs and npm, then run "
    "<code>cmake --build build --target dashboard</code> and start npucd again.</p></html>\n";

StaticFiles::File Make(std::string bytes, absl::string_view name) {
  StaticFiles::File file;
  // Weak, since it also names the compressed bytes.
  file.etag = absl::StrCat("W/\"", Sha256Hex(bytes), "\"");
  file.bytes = std::move(bytes);
  file.type = "application/octet-stream";
  for (const auto& [ending, type] : kTypes) {
    if (absl::EndsWith(name, ending)) file.type = std::string(type);
  }
  if (IsCompressible(file.type)) file.gzip = Gzip(file.bytes, kBestGzip);
  if (file.gzip.size() >= file.bytes.size()) file.gzip.clear();
  // Vite puts a hash of the content into the names of what it bundles.
  file.named_by_content = absl::StartsWith(name, "/assets/");
  return file;
}

}  // namespace

StaticFiles StaticFiles::Read(const std::string& folder) {
  StaticFiles out;
  size_t left = kMaxBytes;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (out.files_.size() == kMaxFiles || !at->is_regular_file(error)) continue;
    std::ifstream in(at->path(), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    if (!in || bytes.size() > left) continue;
    left -= bytes.size();
    const std::string name =
        absl::StrCat("/", at->path().lexically_relative(folder).generic_string());
    out.files_.emplace(name, Make(std::move(bytes), name));
  }
  out.has_dashboard_ = out.files_.count("/index.html") != 0;
  if (!out.has_dashboard_) out.files_.emplace("/index.html", Make(kNotBuilt, "/index.html"));
  return out;
}

const StaticFiles::File* StaticFiles::Find(absl::string_view path) const {
  const auto found = files_.find(path == "/" ? absl::string_view("/index.html") : path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace npuc::http
