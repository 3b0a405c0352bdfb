#ifndef NPUC_COMPILER_CORE_REPORT_GRAPH_PICTURE_H_
#define NPUC_COMPILER_CORE_REPORT_GRAPH_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npuc {

// A picture of a compiled model's layers: as SVG, and as text for Graphviz's dot. Pure.

struct PictureNode {
  std::string name;
  std::string type;
  int64_t level = 0;                // nodes of one level do not read one another
  std::vector<size_t> from;         // nodes that it reads, by position; the edges
  std::vector<std::string> labels;  // of the edges: shapes
};

// The nodes of graph.json (pipeline/profile_graph.h), which must be sound. A node for each tensor
// that no node makes, an input of the model.
std::vector<PictureNode> PictureOf(absl::string_view graph_json);

// One file that needs nothing beside it. Levels are rows; an edge goes from a node's lower side to
// the upper side of one that reads it.
std::string GraphSvg(const std::vector<PictureNode>& nodes, absl::string_view title);

std::string GraphDot(const std::vector<PictureNode>& nodes, absl::string_view title);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_GRAPH_PICTURE_H_
