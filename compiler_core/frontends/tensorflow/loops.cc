#include "compiler_core/frontends/tensorflow/loops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace npuc::tf {
namespace {

bool IsConstantEnter(const NodeView& node) {
  const absl::StatusOr<bool> is_constant = node.Bool("is_constant");
  return is_constant.ok() && *is_constant;
}

std::string FrameName(const NodeView& enter) {
  const absl::StatusOr<std::string> name = enter.String("frame_name");
  return name.ok() ? *name : std::string();
}

}  // namespace

absl::string_view ControlOp(const NodeView& node) { return absl::StripPrefix(node.op(), "Ref"); }

const LoopFrames::LoopMerge* LoopFrames::FindMerge(int node) const {
  const auto it = merges_.find(node);
  return it == merges_.end() ? nullptr : &it->second;
}

const LoopFrames::LoopExit* LoopFrames::FindExit(int node) const {
  const auto it = exits_.find(node);
  return it == exits_.end() ? nullptr : &it->second;
}

int LoopFrames::FrameOf(absl::string_view name) {
  const auto [it, is_new] = frame_by_name_.try_emplace(name, static_cast<int>(frames_.size()));
  if (is_new) {
    frames_.push_back({.name = std::string(name)});
    enters_.emplace_back();
  }
  return it->second;
}

// The text of what is wrong, or none.
std::string LoopFrames::ReadMerge(const Input& input, int node) {
  const absl::Span<const Edge> edges = input.edges_of(node);
  LoopMerge merge;
  int enters = 0;
  int nexts = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const NodeView& producer = input.file.node(edges[i].producer);
    if (ControlOp(producer) == "NextIteration") {
      merge.next = i;
      ++nexts;
    } else if (ControlOp(producer) == "Enter") {
      merge.enter = i;
      merge.frame = FrameOf(FrameName(producer));
      ++enters;
    }
  }
  if (nexts == 0) return "";
  if (enters != 1 || nexts != 1 || edges.size() != 2) {
    return absl::StrCat("the node joins ", edges.size(), " values, ", enters,
                        " of them from an Enter and ", nexts,
                        " from a NextIteration; a loop variable has one of each");
  }
  merges_.emplace(node, merge);
  return "";
}

std::string LoopFrames::ReadExit(const Input& input, int node) {
  const absl::Span<const Edge> edges = input.edges_of(node);
  if (edges.size() == 1 && input.is_cut(edges[0])) return "";
  const std::string expected =
      "; the value that leaves a while loop must come from the Switch of a loop variable, which "
      "a LoopCond steers";
  if (edges.size() != 1) return absl::StrCat("the node has ", edges.size(), " operands", expected);
  const NodeView& from = input.file.node(edges[0].producer);
  const absl::Span<const Edge> of_switch = input.edges_of(edges[0].producer);
  if (ControlOp(from) != "Switch" || edges[0].output != 0 || of_switch.size() != 2) {
    return absl::StrCat("the node takes output ", edges[0].output, " of '", Printable(from.name()),
                        "' (", Printable(from.op()), ")", expected);
  }
  const LoopMerge* merge = FindMerge(of_switch[0].producer);
  const int loop_cond = of_switch[1].producer;
  if (merge == nullptr || of_switch[0].output != 0 ||
      input.file.node(loop_cond).op() != "LoopCond") {
    return absl::StrCat("its Switch '", Printable(from.name()), "' is not that of a loop variable",
                        expected);
  }
  Frame& frame = frames_[static_cast<size_t>(merge->frame)];
  if (frame.loop_cond >= 0 && frame.loop_cond != loop_cond) {
    return absl::StrCat("the loop '", Printable(frame.name), "' has two LoopConds");
  }
  frame.loop_cond = loop_cond;
  frame.exits.push_back(node);
  exits_.emplace(node, LoopExit{.frame = merge->frame, .variable = of_switch[0]});
  return "";
}

int LoopFrames::Depth(int frame) const {
  int depth = 0;
  for (; frame != 0 && depth <= kMaxLoopNesting; ++depth) {
    frame = frames_[static_cast<size_t>(frame)].parent;
  }
  return depth;
}

int LoopFrames::LevelOf(const Input& input, int node) const {
  if (const LoopMerge* merge = FindMerge(node)) return merge->frame;
  if (const LoopExit* exit = FindExit(node)) {
    return frames_[static_cast<size_t>(exit->frame)].parent;
  }
  const NodeView& view = input.file.node(node);
  if (ControlOp(view) == "Enter" && !IsConstantEnter(view)) {
    return frame_by_name_.at(FrameName(view));
  }
  int level = 0;
  for (const Edge& edge : input.edges_of(node)) {
    if (input.is_cut(edge)) continue;
    const int other = levels_[static_cast<size_t>(edge.producer)];
    if (other != level && Depth(other) > Depth(level)) level = other;
  }
  return level;
}

// A frame's parent is the deepest frame of what enters it, which may itself be known only when the
// parents of other frames are: so this repeats until nothing changes. False where it does not end.
bool LoopFrames::SettleLevels(const Input& input) {
  for (int pass = 0; pass < 2 * kMaxLoopNesting; ++pass) {
    bool has_changed = false;
    for (int node : input.order) {
      const int level = LevelOf(input, node);
      has_changed = has_changed || level != levels_[static_cast<size_t>(node)];
      levels_[static_cast<size_t>(node)] = level;
    }
    for (size_t f = 1; f < frames_.size(); ++f) {
      int parent = 0;
      for (int enter : enters_[f]) {
        for (const Edge& edge : input.edges_of(enter)) {
          const int level = input.is_cut(edge) ? 0 : levels_[static_cast<size_t>(edge.producer)];
          // A value that stays the same may also enter a loop that it was made in.
          if (level != static_cast<int>(f) && Depth(level) > Depth(parent)) parent = level;
        }
      }
      has_changed = has_changed || parent != frames_[f].parent;
      frames_[f].parent = parent;
      if (Depth(static_cast<int>(f)) > kMaxLoopNesting) return false;
    }
    if (!has_changed) return true;
  }
  return false;
}

std::vector<LoopFrames::Problem> LoopFrames::Analyse(const GraphFile& file,
                                                     absl::Span<const int> order,
                                                     const EdgesOf& edges_of, const IsCut& is_cut) {
  const Input input{file, order, edges_of, is_cut};
  std::vector<Problem> problems;
  const auto note = [&](int node, std::string message) {
    if (!message.empty()) problems.push_back({node, std::move(message)});
  };
  bool has_loops = false;
  for (int node : order) {
    const absl::string_view op = ControlOp(file.node(node));
    has_loops = has_loops || op == "Enter" || op == "Exit" || op == "NextIteration";
    if (op == "Enter") {
      const int frame = FrameOf(FrameName(file.node(node)));
      enters_[static_cast<size_t>(frame)].push_back(node);
    }
  }
  if (!has_loops) return problems;
  for (int node : order) {
    if (ControlOp(file.node(node)) == "Merge") note(node, ReadMerge(input, node));
  }
  for (int node : order) {
    if (ControlOp(file.node(node)) == "Exit") note(node, ReadExit(input, node));
  }
  levels_.assign(static_cast<size_t>(file.node_count()), 0);
  is_settled_ = SettleLevels(input);
  if (!is_settled_) {
    note(order.front(), absl::StrCat("while loops of the model enter each other in a circle or are "
                                     "nested more than ",
                                     kMaxLoopNesting, " deep"));
  }
  return problems;
}

}  // namespace npuc::tf
