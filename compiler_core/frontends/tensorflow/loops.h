#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_LOOPS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_LOOPS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"

namespace npuc::tf {

// Limits on the while loops of a model; more is a diagnostic.
inline constexpr int kMaxLoopIterations = 4096;
inline constexpr int kMaxLoopNesting = 16;
inline constexpr int kMaxUnrolledNodes = 1 << 18;  // evaluations of nodes inside of loops

// A data input of a node.
struct Edge {
  int producer = -1;
  int output = 0;
};

// The operator without the Ref of its reference-variable twin: "RefEnter" -> "Enter".
absl::string_view ControlOp(const NodeView& node);

// Which while loop each node runs in. TensorFlow writes a loop as a frame: Enter takes a value in,
// Merge joins it with what NextIteration hands over from the turn before, Switch lets it out by
// Exit once LoopCond is false. Frame 0 is what lies outside of all loops. A node runs in the
// deepest frame of its operands, so what does not change from turn to turn runs outside of the
// loop, once. Immutable once analysed.
class LoopFrames {
 public:
  struct Frame {
    std::string name;
    int parent = 0;
    int loop_cond = -1;           // the LoopCond node, where an Exit is needed
    std::vector<int> exits = {};  // its Exit nodes that are needed
  };
  // The Merge of a loop variable: which of its two operands is which.
  struct LoopMerge {
    int frame = 0;
    size_t enter = 0;
    size_t next = 0;
  };
  struct LoopExit {
    int frame = 0;
    Edge variable;  // the Merge that holds the loop variable
  };
  struct Problem {
    int node = -1;
    std::string message;
  };
  using EdgesOf = std::function<absl::Span<const Edge>(int node)>;
  using IsCut = std::function<bool(const Edge& edge)>;

  // Analyses the nodes of `order`; returns those whose control flow is not that of a while loop.
  std::vector<Problem> Analyse(const GraphFile& file, absl::Span<const int> order,
                               const EdgesOf& edges_of, const IsCut& is_cut);

  // False where the loops do not nest; then nothing below means anything.
  bool is_settled() const { return is_settled_; }
  int level(int node) const { return levels_.empty() ? 0 : levels_[static_cast<size_t>(node)]; }
  const Frame& frame(int i) const { return frames_[static_cast<size_t>(i)]; }
  // Null where the node is not the Merge or Exit of a loop.
  const LoopMerge* FindMerge(int node) const;
  const LoopExit* FindExit(int node) const;

 private:
  struct Input {
    const GraphFile& file;
    absl::Span<const int> order;
    const EdgesOf& edges_of;
    const IsCut& is_cut;
  };
  int FrameOf(absl::string_view name);
  std::string ReadMerge(const Input& input, int node);
  std::string ReadExit(const Input& input, int node);
  int Depth(int frame) const;  // kMaxLoopNesting + 1 where it is more, or endless
  int LevelOf(const Input& input, int node) const;
  bool SettleLevels(const Input& input);

  std::vector<Frame> frames_ = {Frame{}};
  absl::flat_hash_map<std::string, int> frame_by_name_;
  std::vector<std::vector<int>> enters_ = {{}};  // by frame
  absl::flat_hash_map<int, LoopMerge> merges_;
  absl::flat_hash_map<int, LoopExit> exits_;
  bool is_settled_ = true;
  std::vector<int> levels_;  // by node; empty where there are no loops
};

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_LOOPS_H_
