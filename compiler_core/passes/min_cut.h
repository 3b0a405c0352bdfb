#ifndef NPUC_COMPILER_CORE_PASSES_MIN_CUT_H_
#define NPUC_COMPILER_CORE_PASSES_MIN_CUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npuc {

// A cut of least cost through a directed graph, by maximum flow (Dinic's algorithm). An edge costs
// its capacity where it leads from the source's side to the other. Deterministic. Not thread-safe.
class MinCut {
 public:
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;
  static constexpr int64_t kInfinite = int64_t{1} << 60;

  int AddNode();
  void AddEdge(int from, int to, int64_t capacity);
  // Returns the cost of the cheapest cut. Once.
  int64_t Solve();
  // After Solve: whether a node lies on the source's side in the cut with the fewest nodes there.
  bool OnSourceSide(int node) const { return level_[node] >= 0; }

 private:
  struct Edge {
    int to;
    int64_t left;  // capacity that is not used; the edge back is the one numbered next to it
  };
  bool FindLevels();
  int64_t Augment();

  std::vector<Edge> edges_;
  std::vector<std::vector<int>> out_ = {{}, {}};  // by node: edges
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_MIN_CUT_H_
