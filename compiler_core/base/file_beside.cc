#include "compiler_core/base/file_beside.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace npuc {
namespace {

constexpr int kMaxFilesSeen = 10'000;
constexpr absl::string_view kPaddleProgram = "__model__";
constexpr absl::string_view kPaddleParameters = "__params__";
constexpr absl::string_view kDeployed = "deploy";  // by Caffe's custom the net without its training

bool IsThere(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// The name without the format's ending, or without any.
std::string StemOf(const FrameworkInfo& info, const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const absl::string_view ending : absl::StrSplit(info.endings, '|', absl::SkipEmpty())) {
    if (absl::EndsWith(lower, ending)) return name.substr(0, name.size() - ending.size());
  }
  return std::filesystem::path(name).stem().string();
}

// The names in the folder with the ending, which is cut off.
std::vector<std::string> StemsIn(const std::filesystem::path& folder, absl::string_view ending) {
  std::vector<std::string> stems;
  std::error_code error;
  int seen = 0;
  for (std::filesystem::directory_iterator it(folder.empty() ? "." : folder, error), end;
       !error && it != end && seen < kMaxFilesSeen; it.increment(error), ++seen) {
    const std::string name = it->path().filename().string();
    absl::string_view stem = name;
    if (absl::ConsumeSuffix(&stem, ending) && !stem.empty()) stems.emplace_back(stem);
  }
  return stems;
}

// The last name in the folder with the ending, of those that share the beginning; or empty.
std::string LastRelative(const std::filesystem::path& folder, const std::string& stem,
                         absl::string_view ending) {
  std::string last;
  for (const std::string& other : StemsIn(folder, ending)) {
    if (!absl::StartsWith(other, stem) && !absl::StartsWith(stem, other)) continue;
    last = std::max(last, absl::StrCat(other, ending));
  }
  return last;
}

// The name in the folder with the ending, where there is one alone; or empty. A solver's settings
// are no net.
std::string OnlyOne(const std::filesystem::path& folder, absl::string_view ending) {
  std::vector<std::string> stems = StemsIn(folder, ending);
  stems.erase(
      std::remove_if(stems.begin(), stems.end(),
                     [](const std::string& stem) { return absl::StrContains(stem, "solver"); }),
      stems.end());
  return stems.size() == 1 ? absl::StrCat(stems[0], ending) : "";
}

}  // namespace

FileBeside FindFileBeside(const FrameworkInfo& info, const std::string& model_path,
                          absl::string_view stated) {
  const std::filesystem::path model(model_path);
  const std::filesystem::path folder = model.parent_path();
  const auto named = [&](absl::string_view name) {
    return FileBeside{(folder / std::string(name)).string(), std::string(name)};
  };
  if (!stated.empty() && IsThere(folder / std::string(stated))) return named(stated);
  if (info.data_ending.empty()) return {};
  const std::string name = model.filename().string();
  const std::string stem = StemOf(info, name);
  const std::string usual = absl::StrCat(stem, info.data_ending);
  if (info.data_file == DataFile::kAlways) {
    if (name != kPaddleProgram || IsThere(folder / usual)) return {named(usual).path, ""};
    if (IsThere(folder / std::string(kPaddleParameters))) return named(kPaddleParameters);
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(folder, error).lexically_normal();
    const std::filesystem::path last = whole.has_filename() ? whole : whole.parent_path();
    return {(folder / ".").string(), (".." / last.filename()).string()};
  }
  if (IsThere(folder / usual)) return named(usual);
  std::string found = LastRelative(folder, stem, info.data_ending);
  const std::string deployed = absl::StrCat(kDeployed, info.data_ending);
  if (found.empty() && IsThere(folder / deployed)) found = deployed;
  if (found.empty()) found = OnlyOne(folder, info.data_ending);
  return found.empty() ? FileBeside{} : named(found);
}

}  // namespace npuc
