#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_SAVED_MODEL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_SAVED_MODEL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc::fe::tf {
class GraphDef;
}  // namespace npuc::fe::tf

namespace npuc::tf {

// Freezes a SavedModel into `graph`: the nodes that the outputs of its signature need, functions
// inlined, each variable a constant that has its value of the checkpoint. A Placeholder has the
// name of the signature's input, an Identity that of its output; the signature is serving_default,
// or the only one. A node has its function's name for it, with the calls' names before it where
// another node has that name. INVALID_ARGUMENT saying what is wrong, with the node.
absl::Status FreezeSavedModel(absl::string_view archive, fe::tf::GraphDef& graph);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_SAVED_MODEL_H_
