#include "compiler_core/tools/graph_files.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/report/graph_picture.h"
#include "compiler_core/tools/files.h"

extern char** environ;

namespace npuc {
namespace {

constexpr int64_t kMaxPictureBytes = int64_t{256} << 20;

// Runs dot on a file; false where it is not installed or fails.
bool RunDot(const std::string& format, const std::string& from, const std::string& to) {
  const std::string option = absl::StrCat("-T", format);
  std::vector<const char*> words = {"dot", option.c_str(), "-o", to.c_str(), from.c_str(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, "dot", nullptr, nullptr, const_cast<char* const*>(words.data()),
                     environ) != 0) {
    return false;
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A picture by Graphviz; nullopt where there is none.
std::optional<std::string> ByGraphviz(const std::string& dot, const std::string& format) {
  std::string folder = (std::filesystem::temp_directory_path() / "npuc-dot-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return std::nullopt;
  const absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  };
  const std::string from = absl::StrCat(folder, "/graph.dot");
  const std::string to = absl::StrCat(folder, "/graph.", format);
  if (!WriteFileAtomically(from, dot).ok() || !RunDot(format, from, to)) return std::nullopt;
  absl::StatusOr<std::string> picture = ReadFile(to, kMaxPictureBytes);
  if (!picture.ok()) return std::nullopt;
  return *std::move(picture);
}

absl::Status Write(const std::string& path, const std::string& picture, bool prints) {
  if (prints) std::printf("%s %zu bytes\n", Printable(path).c_str(), picture.size());
  return WriteFileAtomically(path, picture);
}

}  // namespace

absl::Status WriteGraphPictures(const GraphPictures& pictures, absl::string_view graph_json,
                                const std::string& title, bool prints, Diagnostics& diagnostics) {
  if (pictures.svg.empty() && pictures.png.empty()) return absl::OkStatus();
  const std::vector<PictureNode> nodes = PictureOf(graph_json);
  const std::string dot = GraphDot(nodes, title);
  if (!pictures.svg.empty()) {
    const std::optional<std::string> drawn = ByGraphviz(dot, "svg");
    RETURN_IF_ERROR(
        Write(pictures.svg, drawn.has_value() ? *drawn : GraphSvg(nodes, title), prints));
  }
  if (pictures.png.empty()) return absl::OkStatus();
  const std::optional<std::string> drawn = ByGraphviz(dot, "png");
  if (drawn.has_value()) return Write(pictures.png, *drawn, prints);
  diagnostics.Add({.kind = DiagnosticKind::kFileUnwritable,
                   .message = "a PNG of the graph is drawn by Graphviz's dot, which is not here or "
                              "failed",
                   .file = pictures.png,
                   .fix = "install graphviz, or write an SVG with svg in place of png"});
  return diagnostics.ToStatus();
}

}  // namespace npuc
