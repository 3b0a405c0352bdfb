#include "compiler_core/passes/min_cut.h"

#include <algorithm>

namespace npuc {

int MinCut::AddNode() {
  out_.emplace_back();
  return static_cast<int>(out_.size()) - 1;
}

void MinCut::AddEdge(int from, int to, int64_t capacity) {
  if (capacity == 0) return;
  out_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  out_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::FindLevels() {
  level_.assign(out_.size(), -1);
  level_[kSource] = 0;
  std::vector<int> queue = {kSource};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int e : out_[queue[i]]) {
      if (edges_[e].left == 0 || level_[edges_[e].to] >= 0) continue;
      level_[edges_[e].to] = level_[queue[i]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[kSink] >= 0;
}

// Pushes flow along one path of rising levels; 0 where there is none left.
int64_t MinCut::Augment() {
  std::vector<int> path;
  int node = kSource;
  while (node != kSink) {
    if (next_[node] == out_[node].size()) {
      if (path.empty()) return 0;
      // A dead end: back one step, and past the edge that led here.
      node = edges_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[node];
      continue;
    }
    const int e = out_[node][next_[node]];
    if (edges_[e].left > 0 && level_[edges_[e].to] == level_[node] + 1) {
      path.push_back(e);
      node = edges_[e].to;
    } else {
      ++next_[node];
    }
  }
  int64_t flow = kInfinite;
  for (const int e : path) flow = std::min(flow, edges_[e].left);
  for (const int e : path) {
    edges_[e].left -= flow;
    edges_[e ^ 1].left += flow;
  }
  return flow;
}

int64_t MinCut::Solve() {
  int64_t total = 0;
  while (FindLevels()) {
    next_.assign(out_.size(), 0);
    while (const int64_t flow = Augment()) {
      total += flow;
      if (total >= kInfinite) return total;
    }
  }
  return total;
}

}  // namespace npuc
