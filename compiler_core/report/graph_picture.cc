#include "compiler_core/report/graph_picture.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/json_tree.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

// Sizes in the units of the picture; a character of the text takes at most kCharWidth.
constexpr int64_t kCharWidth = 8;
constexpr int64_t kBoxHeight = 44;
constexpr int64_t kGapX = 24;
constexpr int64_t kGapY = 56;
constexpr int64_t kMargin = 20;
constexpr size_t kLongestText = 40;  // of a box; a longer one loses its middle

std::string Shortened(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  constexpr size_t kEnd = kLongestText / 2 - 1;
  const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  size_t head = kEnd;  // not inside a UTF-8 character
  while (head > 0 && is_inside(text[head])) --head;
  size_t tail = text.size() - kEnd;
  while (tail < text.size() && is_inside(text[tail])) ++tail;
  return absl::StrCat(text.substr(0, head), "...", text.substr(tail));
}

std::string XmlText(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

struct Box {
  std::string name;
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
};

// Each level is a row in the middle of the picture. Its boxes stand in the order of the nodes.
class Layout {
 public:
  explicit Layout(const std::vector<PictureNode>& nodes) {
    std::map<int64_t, int64_t> widths;  // of rows
    for (const PictureNode& node : nodes) {
      Box box;
      box.name = Shortened(node.name);
      const size_t longest = std::max(box.name.size(), node.type.size());
      box.width = kCharWidth * static_cast<int64_t>(longest) + kGapX;
      widths[node.level] += box.width + kGapX;
      boxes_.push_back(std::move(box));
    }
    for (const auto& [level, width] : widths) width_ = std::max(width_, width);
    std::map<int64_t, int64_t> next;  // free place of a row
    int64_t row = 0;
    std::map<int64_t, int64_t> rows;
    for (const auto& [level, width] : widths) {
      rows[level] = row++;
      next[level] = kMargin + (width_ - width) / 2;
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      boxes_[i].x = next[nodes[i].level];
      boxes_[i].y = kMargin + rows[nodes[i].level] * (kBoxHeight + kGapY);
      next[nodes[i].level] += boxes_[i].width + kGapX;
    }
    height_ = 2 * kMargin + row * (kBoxHeight + kGapY);
    width_ += 2 * kMargin;
  }

  const std::vector<Box>& boxes() const { return boxes_; }
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }

 private:
  std::vector<Box> boxes_;
  int64_t width_ = 0;
  int64_t height_ = 0;
};

void AppendEdge(const Box& from, const Box& to, const std::string& label, std::string& out) {
  const int64_t x1 = from.x + from.width / 2;
  const int64_t y1 = from.y + kBoxHeight;
  const int64_t x2 = to.x + to.width / 2;
  const int64_t y2 = to.y;
  absl::StrAppend(&out, "<path class=\"edge\" d=\"M", x1, " ", y1, "C", x1, " ", y1 + kGapY / 2,
                  " ", x2, " ", y2 - kGapY / 2, " ", x2, " ", y2, "\"/>\n");
  absl::StrAppend(&out, "<text class=\"shape\" x=\"", (x1 + x2) / 2 + 4, "\" y=\"",
                  (y1 + y2) / 2 + 4, "\">", XmlText(label), "</text>\n");
}

void AppendBox(const Box& box, const PictureNode& node, std::string& out) {
  const int64_t middle = box.x + box.width / 2;
  absl::StrAppend(&out, "<g class=\"node\"><title>", XmlText(node.name), "</title><rect x=\"",
                  box.x, "\" y=\"", box.y, "\" width=\"", box.width, "\" height=\"", kBoxHeight,
                  "\" rx=\"6\"/><text x=\"", middle, "\" y=\"", box.y + 18,
                  "\" font-weight=\"bold\">", XmlText(node.type), "</text><text x=\"", middle,
                  "\" y=\"", box.y + 35, "\">", XmlText(box.name), "</text></g>\n");
}

}  // namespace

std::vector<PictureNode> PictureOf(absl::string_view graph_json) {
  const auto graph = nlohmann::json::parse(graph_json)["graph"];
  std::map<std::string, std::string> shapes;
  for (const auto& tensor : graph["tensors"]) {
    shapes[tensor["name"].get<std::string>()] =
        absl::StrCat("[", absl::StrJoin(tensor["shape"].get<std::vector<int64_t>>(), ","), "]");
  }
  std::vector<PictureNode> nodes;
  std::map<std::string, size_t> makers;
  for (const auto& node : graph["nodes"]) {
    for (const auto& output : node["output"]) makers[output.get<std::string>()] = nodes.size();
    nodes.push_back({node["name"].get<std::string>(),
                     node["op_type"].get<std::string>(),
                     node["level"].get<int64_t>(),
                     {},
                     {}});
  }
  for (size_t i = 0; i < graph["nodes"].size(); ++i) {
    for (const auto& input : graph["nodes"][i]["input"]) {
      const std::string name = input.get<std::string>();
      const auto [maker, added] = makers.emplace(name, nodes.size());
      if (added) nodes.push_back({name, "Input", -1, {}, {}});
      nodes[i].from.push_back(maker->second);
      nodes[i].labels.push_back(shapes[name]);
    }
  }
  return nodes;
}

std::string GraphSvg(const std::vector<PictureNode>& nodes, absl::string_view title) {
  const Layout layout(nodes);
  std::string out = absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"",
      layout.width(), "\" height=\"", layout.height(), "\" viewBox=\"0 0 ", layout.width(), " ",
      layout.height(), "\">\n<title>", XmlText(title),
      "</title>\n<style>text{font:13px sans-serif;text-anchor:middle;fill:#1c2330}"
      ".shape{font-size:11px;text-anchor:start;fill:#5a6576}"
      "rect{fill:#f5f7fa;stroke:#5a6576}.edge{fill:none;stroke:#5a6576}</style>\n"
      "<rect width=\"100%\" height=\"100%\" style=\"fill:#fff;stroke:none\"/>\n");
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t k = 0; k < nodes[i].from.size(); ++k) {
      AppendEdge(layout.boxes()[nodes[i].from[k]], layout.boxes()[i], nodes[i].labels[k], out);
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) AppendBox(layout.boxes()[i], nodes[i], out);
  return out + "</svg>\n";
}

std::string GraphDot(const std::vector<PictureNode>& nodes, absl::string_view title) {
  // Names are data: dot reads "\\" and what follows inside of quotes.
  const auto escaped = [](absl::string_view text) {
    return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}});
  };
  std::string out = absl::StrCat("digraph \"", escaped(title), "\" {\nnode [shape=box];\n");
  for (size_t i = 0; i < nodes.size(); ++i) {
    absl::StrAppend(&out, "n", i, " [label=\"", escaped(nodes[i].type), "\\n",
                    escaped(Shortened(nodes[i].name)), "\"];\n");
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t k = 0; k < nodes[i].from.size(); ++k) {
      absl::StrAppend(&out, "n", nodes[i].from[k], " -> n", i, " [label=\"",
                      escaped(nodes[i].labels[k]), "\"];\n");
    }
  }
  return out + "}\n";
}

}  // namespace npuc
