#ifndef NPUC_COMPILER_CORE_TOOLS_GRAPH_FILES_H_
#define NPUC_COMPILER_CORE_TOOLS_GRAPH_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// Where the pictures of a compiled model's graph go; empty: nowhere.
struct GraphPictures {
  std::string svg;
  std::string png;
};

// Draws the graph of graph.json: by Graphviz's dot where that is installed, else an SVG by
// report/graph_picture.h. A PNG without Graphviz becomes a diagnostic.
absl::Status WriteGraphPictures(const GraphPictures& pictures, absl::string_view graph_json,
                                const std::string& title, bool prints, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_GRAPH_FILES_H_
