#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FUNCTION_CONTROL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FUNCTION_CONTROL_H_

namespace npuc::fe::tf {
class GraphDef;
}  // namespace npuc::fe::tf

namespace npuc::tf {

// Writes While, StatelessWhile, If and StatelessIf, which run functions, as the control flow of
// TensorFlow 1 around calls of these: Enter, Merge, Switch, NextIteration and Exit, or Switch and
// Merge. It does so in the graph and in each of its functions; what no longer names the node names
// the results of those. A node without its functions or types stays as it is. Handles of variables
// go past the loop, since no turn changes them.
void LowerFunctionControl(fe::tf::GraphDef& graph);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FUNCTION_CONTROL_H_
