#ifndef NPUC_COMPILER_CORE_IR_GRAPH_TEXT_H_
#define NPUC_COMPILER_CORE_IR_GRAPH_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// The textual form, one node a line; Parse(Print(g)) prints the same text.
//   graph "m" {
//     %0 = Placeholder() : f32[1,784] @"input_x"
//     %1 = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"w" ("Const")
//     %2, %3 = Split(%0) {axis = 1, num = 2} : f32[1,392], f32[1,392] @"s" ("Split")
//     return %2 @"out", %3 @"state" fp16
//   }
// Attribute values: true/false, 7, 1.5 (always with '.', 'e', inf or nan), "text", [1, 2],
// [1.0, 2.0], and tensors as `f32[2] "hex"` or, where all of two or more elements are equal,
// `f32[2] splat "hex"` with the bytes of one. An empty list of either kind prints as []. Strings
// escape ", \ and non-printable bytes as \xNN. # starts a comment. The parser takes any name of
// letters, digits and _ after %; values are numbered in order of definition.
struct PrintOptions {
  int64_t max_constant_bytes = -1;  // longer constants print as `f32[64,10] elided`; -1: none
};
std::string PrintGraph(const Graph& graph, const PrintOptions& options = {});

struct ParseOptions {
  int64_t max_text_bytes = int64_t{1} << 31;
  int64_t max_constant_bytes = int64_t{1} << 30;  // of all constants together
};

// INVALID_ARGUMENT with line and column; bounded input size and counts. Elided constants are
// refused. The result has been through VerifyStructure.
absl::StatusOr<Graph> ParseGraph(absl::string_view text, const ParseOptions& options = {});

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_GRAPH_TEXT_H_
