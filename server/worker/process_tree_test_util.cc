#include "server/worker/process_tree_test_util.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace npuc::worker {
namespace {

struct State {
  char letter = 0;  // of proc(5): 'S' sleeps
  pid_t parent = 0;
};

// Empty where the process is gone by now (an iterator over the file's characters would throw then).
State StateOf(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string text;
  std::getline(file, text, '\0');
  // "PID (NAME) STATE PARENT ...": the name may have anything in it.
  const size_t end = text.rfind(')');
  if (end == std::string::npos || text.size() < end + 4) return {};
  return {text[end + 2], std::atoi(&text[end + 4])};
}

}  // namespace

std::vector<pid_t> ProcessesBelow(pid_t ancestor) {
  std::map<pid_t, pid_t> parents;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0) parents[pid] = StateOf(entry.path()).parent;
  }
  std::vector<pid_t> found;
  for (const auto& [pid, parent] : parents) {
    pid_t above = parent;
    // As many steps as there are processes: the numbers may be reused while they are read.
    for (size_t step = 0; above > 0 && above != ancestor && step < parents.size(); ++step) {
      const auto entry = parents.find(above);
      above = entry == parents.end() ? 0 : entry->second;
    }
    if (above == ancestor) found.push_back(pid);
  }
  return found;
}

bool IsAsleep(pid_t pid) {
  return StateOf(std::filesystem::path("/proc") / std::to_string(pid)).letter == 'S';
}

}  // namespace npuc::worker
