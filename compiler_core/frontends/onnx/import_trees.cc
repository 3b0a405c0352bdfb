// Ensembles of decision trees of domain ai.onnx.ml as products of matrices. All comparisons are
// made at once, as zeros and ones. A leaf counts, over the nodes above it, those that were to hold
// and did less those that were not to hold and did: only the leaf that is reached comes to the
// number of the former. Source: onnx/docs/Operators-ml.md; two classes of one score as onnxruntime
// has them.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/onnx/import_ml.h"

namespace npuc::onnx {
namespace {

// Trees of more elements than this, from nodes to leaves, are products of their own.
constexpr int64_t kMostElementsAtOnce = int64_t{1} << 18;
constexpr int64_t kMostElements = int64_t{1} << 24;  // of all matrices
constexpr int64_t kMostSteps = int64_t{1} << 22;     // from roots to nodes, all of them
constexpr char kSmaller[] = "train fewer or less deep trees (n_estimators, max_depth)";

struct Branch {
  int64_t feature = 0;
  double threshold = 0;
  bool is_negated = false;  // compares the feature with its sign changed
};
struct Leaf {
  std::vector<std::pair<size_t, bool>> path;  // branches above it, and whether they were to hold
  std::vector<double> scores;                 // by target
};
// Trees that one product decides.
struct Group {
  std::vector<Branch> branches;
  std::vector<Leaf> leaves;
};

// The attributes that describe nodes, lists of equal length.
struct NodeLists {
  std::vector<int64_t> trees, ids, features, if_true, if_false;
  std::vector<double> thresholds;
  std::vector<std::string> modes;

  size_t size() const { return ids.size(); }
};

absl::Status Damaged(NodeImporter& node, std::string what) {
  return node.BadAttribute(absl::InvalidArgumentError(std::move(what)));
}

absl::StatusOr<NodeLists> ReadNodes(NodeImporter& node) {
  NodeLists lists;
  ASSIGN_OR_RETURN(lists.trees, node.IntsOr("nodes_treeids", {}));
  ASSIGN_OR_RETURN(lists.ids, node.IntsOr("nodes_nodeids", {}));
  ASSIGN_OR_RETURN(lists.features, node.IntsOr("nodes_featureids", {}));
  ASSIGN_OR_RETURN(lists.if_true, node.IntsOr("nodes_truenodeids", {}));
  ASSIGN_OR_RETURN(lists.if_false, node.IntsOr("nodes_falsenodeids", {}));
  ASSIGN_OR_RETURN(lists.thresholds, node.FloatsOr("nodes_values", {}));
  ASSIGN_OR_RETURN(lists.modes, node.StringsOr("nodes_modes", {}));
  const size_t count = lists.size();
  if (count == 0 || lists.trees.size() != count || lists.features.size() != count ||
      lists.if_true.size() != count || lists.if_false.size() != count ||
      lists.thresholds.size() != count || lists.modes.size() != count) {
    return Damaged(node, "the lists of nodes differ in length, or are empty");
  }
  return lists;
}

// Reads the trees of a node into groups.
class Forest {
 public:
  Forest(NodeImporter& node, int64_t targets, std::string prefix)
      : node_(node), targets_(targets), prefix_(std::move(prefix)) {}

  absl::Status Read() {
    ASSIGN_OR_RETURN(lists_, ReadNodes(node_));
    RETURN_IF_ERROR(IndexNodes());
    RETURN_IF_ERROR(ReadScores());
    is_strict_ = std::all_of(lists_.modes.begin(), lists_.modes.end(), [](const std::string& mode) {
      return mode == "LEAF" || mode == "BRANCH_LT" || mode == "BRANCH_GTE";
    });
    std::vector<Group> trees;
    for (const size_t root : roots_) {
      Group& tree = trees.emplace_back();
      RETURN_IF_ERROR(Walk(root, tree));
      elements_ += static_cast<int64_t>(tree.branches.size() * tree.leaves.size());
    }
    if (elements_ > kMostElements) return TooLarge(elements_);
    Arrange(std::move(trees));
    return absl::OkStatus();
  }

  const std::vector<Group>& groups() const { return groups_; }
  int64_t tree_count() const { return static_cast<int64_t>(roots_.size()); }
  // Branches hold where the feature is below the threshold, and not where it is at it.
  bool is_strict() const { return is_strict_; }
  bool has_negative_score() const { return has_negative_score_; }
  // The only target that has scores; nullopt where several have.
  std::optional<int64_t> only_target() const {
    if (used_targets_.size() != 1) return std::nullopt;
    return used_targets_.begin()->first;
  }
  int64_t targets() const { return targets_; }

  absl::Status TooLarge(int64_t elements) {
    return node_.Fail(DiagnosticKind::kModelLimitExceeded,
                      absl::StrCat("the trees become matrices of ", elements,
                                   " elements; allowed are ", kMostElements),
                      kSmaller);
  }

 private:
  using Key = std::pair<int64_t, int64_t>;  // tree, node

  absl::Status IndexNodes() {
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (!index_.emplace(Key{lists_.trees[i], lists_.ids[i]}, i).second) {
        return Damaged(
            node_, absl::StrCat("tree ", lists_.trees[i], " has node ", lists_.ids[i], " twice"));
      }
    }
    std::vector<bool> is_child(lists_.size(), false);
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (lists_.modes[i] == "LEAF") continue;
      for (const int64_t child : {lists_.if_true[i], lists_.if_false[i]}) {
        const auto found = index_.find({lists_.trees[i], child});
        if (found == index_.end() || is_child[found->second]) {
          return Damaged(node_, absl::StrCat("node ", child, " of tree ", lists_.trees[i],
                                             " is not there, or follows two nodes"));
        }
        is_child[found->second] = true;
      }
    }
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (!is_child[i]) roots_.push_back(i);
    }
    return absl::OkStatus();
  }

  absl::Status ReadScores() {
    ASSIGN_OR_RETURN(const auto trees, node_.IntsOr(prefix_ + "_treeids", {}));
    ASSIGN_OR_RETURN(const auto ids, node_.IntsOr(prefix_ + "_nodeids", {}));
    ASSIGN_OR_RETURN(const auto targets, node_.IntsOr(prefix_ + "_ids", {}));
    ASSIGN_OR_RETURN(const auto weights, node_.FloatsOr(prefix_ + "_weights", {}));
    if (trees.size() != weights.size() || ids.size() != weights.size() ||
        targets.size() != weights.size()) {
      return Damaged(node_, "the lists of scores differ in length");
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto found = index_.find({trees[i], ids[i]});
      if (found == index_.end() || targets[i] < 0 || targets[i] >= targets_) {
        return Damaged(node_, absl::StrCat("a score for target ", targets[i], " of ", targets_,
                                           " at node ", ids[i], " of tree ", trees[i]));
      }
      scores_[found->second].emplace_back(targets[i], weights[i]);
      used_targets_[targets[i]] = true;
      has_negative_score_ = has_negative_score_ || weights[i] < 0;
    }
    return absl::OkStatus();
  }

  // Leaves with their paths, without recursion: a tree may be as deep as it has nodes.
  absl::Status Walk(size_t root, Group& tree) {
    struct Open {
      size_t node;
      std::vector<std::pair<size_t, bool>> path;
    };
    std::vector<Open> open = {{root, {}}};
    while (!open.empty()) {
      Open at = std::move(open.back());
      open.pop_back();
      if (lists_.modes[at.node] == "LEAF") {
        tree.leaves.push_back({std::move(at.path), ScoresOf(at.node)});
        continue;
      }
      steps_left_ -= 2 * (static_cast<int64_t>(at.path.size()) + 1);
      if (steps_left_ < 0) {
        return node_.Fail(
            DiagnosticKind::kModelLimitExceeded,
            absl::StrCat("the paths to the trees' nodes have more than ", kMostSteps, " steps"),
            kSmaller);
      }
      ASSIGN_OR_RETURN(const bool is_turned, AddBranch(at.node, tree));
      const size_t branch = tree.branches.size() - 1;
      for (const bool holds : {true, false}) {
        Open next{index_[{lists_.trees[at.node],
                          holds != is_turned ? lists_.if_true[at.node] : lists_.if_false[at.node]}],
                  at.path};
        next.path.emplace_back(branch, holds);
        open.push_back(std::move(next));
      }
    }
    return absl::OkStatus();
  }

  // Adds the branch as a comparison of the ensemble's kind; true where it is its opposite.
  absl::StatusOr<bool> AddBranch(size_t i, Group& tree) {
    const std::string& mode = lists_.modes[i];
    const bool is_below = mode == "BRANCH_LT" || mode == "BRANCH_GTE";
    if (!is_below && mode != "BRANCH_LEQ" && mode != "BRANCH_GT") {
      return node_.FailMode(absl::StrCat("branches of mode ", Printable(mode)),
                            "export trees that compare by <=, <, > or >=");
    }
    const Shape& shape = node_.shape(0);
    if (lists_.features[i] < 0 || shape.empty() || lists_.features[i] >= shape.back()) {
      return Damaged(
          node_, absl::StrCat("feature ", lists_.features[i], " of ", TypeToString(node_.type(0))));
    }
    // Among branches that compare by <=, x < t is the opposite of -x <= -t.
    const bool is_negated = is_below && !is_strict_;
    const double threshold = lists_.thresholds[i];
    tree.branches.push_back({lists_.features[i], is_negated ? -threshold : threshold, is_negated});
    return (mode == "BRANCH_GT" || mode == "BRANCH_GTE") != is_negated;
  }

  std::vector<double> ScoresOf(size_t leaf) {
    std::vector<double> scores(static_cast<size_t>(targets_), 0.0);
    for (const auto& [target, weight] : scores_[leaf])
      scores[static_cast<size_t>(target)] += weight;
    return scores;
  }

  // One group of all trees where their matrix is small, else one of each.
  void Arrange(std::vector<Group> trees) {
    int64_t branches = 0;
    int64_t leaves = 0;
    for (const Group& tree : trees) {
      branches += static_cast<int64_t>(tree.branches.size());
      leaves += static_cast<int64_t>(tree.leaves.size());
    }
    if (branches * leaves > kMostElementsAtOnce) {
      groups_ = std::move(trees);
      return;
    }
    Group& all = groups_.emplace_back();
    for (Group& tree : trees) {
      const size_t before = all.branches.size();
      all.branches.insert(all.branches.end(), tree.branches.begin(), tree.branches.end());
      for (Leaf& leaf : tree.leaves) {
        for (auto& [branch, holds] : leaf.path) branch += before;
        all.leaves.push_back(std::move(leaf));
      }
    }
  }

  NodeImporter& node_;
  int64_t targets_;
  std::string prefix_;
  NodeLists lists_;
  std::map<Key, size_t> index_;
  std::map<size_t, std::vector<std::pair<int64_t, double>>> scores_;
  std::map<int64_t, bool> used_targets_;
  std::vector<size_t> roots_;
  std::vector<Group> groups_;
  int64_t elements_ = 0;
  int64_t steps_left_ = kMostSteps;
  bool is_strict_ = false;
  bool has_negative_score_ = false;
};

// The matrices of a forest; groups are filled up to the largest one.
struct Matrices {
  int64_t groups = 0, branches = 0, leaves = 0;  // of each group
  std::vector<double> features;                  // [columns, groups * branches]
  std::vector<double> thresholds;                // [groups * branches]
  std::vector<double> paths;                     // [groups, branches, leaves]
  std::vector<double> lacking;                   // [groups, 1, leaves]: 1 where nothing need hold
  std::vector<double> scores;                    // [groups * leaves, targets]
};

// A power of two that brings a threshold within -1..1. One scale has to do for all of them on a
// core that computes in integers, and fp16 ends at 65504.
double FactorOf(double threshold) {
  constexpr int kMostHalvings = 14;  // fp16 holds no smaller factor with all its bits
  if (std::abs(threshold) <= 1 || !std::isfinite(threshold)) return 1;
  return std::ldexp(1, -std::min(std::ilogb(threshold) + 1, kMostHalvings));
}

absl::StatusOr<Matrices> MatricesOf(Forest& forest, int64_t columns) {
  Matrices m;
  m.groups = static_cast<int64_t>(forest.groups().size());
  m.branches = 1;
  for (const Group& group : forest.groups()) {
    m.branches = std::max(m.branches, static_cast<int64_t>(group.branches.size()));
    m.leaves = std::max(m.leaves, static_cast<int64_t>(group.leaves.size()));
  }
  const int64_t targets = forest.targets();
  const int64_t elements = m.groups * (m.branches * (columns + m.leaves) + m.leaves * targets);
  if (elements > kMostElements) return forest.TooLarge(elements);
  const auto zeros = [](int64_t count) {
    return std::vector<double>(static_cast<size_t>(count), 0.0);
  };
  m.features = zeros(columns * m.groups * m.branches);
  m.thresholds = zeros(m.groups * m.branches);
  m.paths = zeros(m.groups * m.branches * m.leaves);
  m.lacking.assign(static_cast<size_t>(m.groups * m.leaves), -1.0);
  m.scores = zeros(m.groups * m.leaves * targets);
  for (int64_t g = 0; g < m.groups; ++g) {
    const Group& group = forest.groups()[static_cast<size_t>(g)];
    for (size_t b = 0; b < group.branches.size(); ++b) {
      const auto column = static_cast<size_t>(g * m.branches) + b;
      const Branch& branch = group.branches[b];
      const double factor = FactorOf(branch.threshold);
      m.features[static_cast<size_t>(branch.feature * m.groups * m.branches) + column] =
          branch.is_negated ? -factor : factor;
      m.thresholds[column] = branch.threshold * factor;
    }
    for (size_t l = 0; l < group.leaves.size(); ++l) {
      const auto row = static_cast<size_t>(g * m.leaves) + l;
      const Leaf& leaf = group.leaves[l];
      m.lacking[row] = 1;
      for (const auto& [branch, holds] : leaf.path) {
        const int64_t at = (g * m.branches + static_cast<int64_t>(branch)) * m.leaves;
        m.paths[static_cast<size_t>(at) + l] = holds ? 1 : -1;
        if (holds) m.lacking[row] -= 1;
      }
      std::copy(leaf.scores.begin(), leaf.scores.end(),
                m.scores.begin() + static_cast<int64_t>(row) * targets);
    }
  }
  return m;
}

// The sums of the trees' scores, [rows, targets].
absl::StatusOr<ValueRef> Sums(NodeImporter& node, Forest& forest) {
  ASSIGN_OR_RETURN(ValueRef x, FeatureRows(node));
  const int64_t rows = x->type.shape[0];
  const int64_t columns = x->type.shape[1];
  ASSIGN_OR_RETURN(const Matrices m, MatricesOf(forest, columns));
  const auto floats = [&](Shape shape, const std::vector<double>& values) {
    return node.Floats(std::move(shape), values, DType::kFloat32);
  };
  ASSIGN_OR_RETURN(x,
                   node.Emit("MatMul", {x, floats({columns, m.groups * m.branches}, m.features)}));
  const ValueRef thresholds = floats({1, m.groups * m.branches}, m.thresholds);
  ASSIGN_OR_RETURN(x, node.Emit(forest.is_strict() ? "Greater" : "GreaterEqual", {thresholds, x}));
  ASSIGN_OR_RETURN(x, CastTo(node, x, DType::kFloat32));
  if (m.groups > 1) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {rows, m.groups, m.branches}));
    ASSIGN_OR_RETURN(x, node.Transposed(x, {1, 0, 2}));
  }
  const Shape paths =
      m.groups > 1 ? Shape{m.groups, m.branches, m.leaves} : Shape{m.branches, m.leaves};
  const Shape lacking = m.groups > 1 ? Shape{m.groups, 1, m.leaves} : Shape{1, m.leaves};
  ASSIGN_OR_RETURN(x, node.Emit("MatMul", {x, floats(paths, m.paths)}));
  ASSIGN_OR_RETURN(x, node.Emit("Add", {x, floats(lacking, m.lacking)}));
  ASSIGN_OR_RETURN(x, node.Emit("Relu", {x}));
  if (m.groups > 1) {
    ASSIGN_OR_RETURN(x, node.Transposed(x, {1, 0, 2}));
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {rows, m.groups * m.leaves}));
  }
  return node.Emit("MatMul", {x, floats({m.groups * m.leaves, forest.targets()}, m.scores)});
}

// Adds a number for each target where the model has as many; onnxruntime drops other ones.
absl::StatusOr<ValueRef> WithBase(NodeImporter& node, ValueRef sums, int64_t targets) {
  ASSIGN_OR_RETURN(const std::vector<double> base, node.FloatsOr("base_values", {}));
  if (base.empty() || static_cast<int64_t>(base.size()) != targets) return sums;
  return node.Emit("Add", {sums, node.Floats({targets}, base, DType::kFloat32)});
}

absl::Status ImportTreeRegressor(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t targets, node.IntOr("n_targets", 1));
  ASSIGN_OR_RETURN(const std::string aggregate, node.StringOr("aggregate_function", "SUM"));
  if (aggregate != "SUM" && aggregate != "AVERAGE") {
    return node.FailMode(absl::StrCat("aggregate_function ", Printable(aggregate)),
                         "use SUM or AVERAGE");
  }
  if (targets < 1 || targets > kMostElements) {
    return Damaged(node, absl::StrCat(targets, " targets"));
  }
  Forest forest(node, targets, "target");
  RETURN_IF_ERROR(forest.Read());
  ASSIGN_OR_RETURN(ValueRef y, Sums(node, forest));
  if (aggregate == "AVERAGE") {
    const ValueRef share = node.ScalarLike(y, 1.0 / static_cast<double>(forest.tree_count()));
    ASSIGN_OR_RETURN(y, node.Emit("Mul", {y, share}));
  }
  ASSIGN_OR_RETURN(y, WithBase(node, y, targets));
  return node.SetOutput(TransformedScores(node, y));
}

// Two classes of which one alone has scores: labels and scores. Where it is the first one, its
// score counts for the second, and the first has what is left of 1, or where it has a sign or
// LOGISTIC follows, its opposite; where it is the second, the first has 0.
absl::Status ImportTwoClasses(NodeImporter& node, Forest& forest,
                              const std::vector<int64_t>& labels) {
  ASSIGN_OR_RETURN(const std::vector<double> base, node.FloatsOr("base_values", {}));
  if (base.size() > 1) {
    return node.FailMode(absl::StrCat(base.size(), " base_values for one score"),
                         "export the model with one of them, or with scores for both classes");
  }
  const bool is_of_second = forest.only_target() == 1;
  const bool is_share = !forest.has_negative_score();
  ASSIGN_OR_RETURN(const ValueRef sums, Sums(node, forest));
  ASSIGN_OR_RETURN(ValueRef score, node.Reduced("ReduceSum", sums, {1}, /*keep_dims=*/true));
  if (!is_of_second) {
    ASSIGN_OR_RETURN(score, WithBase(node, score, 1));
  }
  std::vector<ValueRef> outputs(2);
  if (node.WantsOutput(0)) {
    const ValueRef least = node.ScalarLike(score, is_share ? 0.5 : 0.0);
    ASSIGN_OR_RETURN(ValueRef index, node.Emit("Greater", {score, least}));
    ASSIGN_OR_RETURN(index, CastTo(node, index, DType::kInt64));
    ASSIGN_OR_RETURN(index, node.Reshaped(index, {score->type.shape[0]}));
    ASSIGN_OR_RETURN(outputs[0], LabelsAt(node, index, labels));
  }
  if (is_of_second) {
    ASSIGN_OR_RETURN(outputs[1], TransformedScores(node, sums));
    return node.SetOutputs(std::move(outputs));
  }
  ASSIGN_OR_RETURN(const std::string transform, node.StringOr("post_transform", "NONE"));
  const Term second(node, score);
  const Term first = is_share && transform != "LOGISTIC" ? 1.0 - second : -second;
  RETURN_IF_ERROR(first.value.status());
  ASSIGN_OR_RETURN(outputs[1], node.Joined({*first.value, score}, 1));
  if (transform == "LOGISTIC") {
    ASSIGN_OR_RETURN(outputs[1], node.Emit("Sigmoid", {outputs[1]}));
  } else if (transform != "NONE") {
    return node.FailMode(absl::StrCat("post_transform ", Printable(transform), " of one score"),
                         "use NONE or LOGISTIC");
  }
  return node.SetOutputs(std::move(outputs));
}

// Results: labels [rows], scores [rows, classes].
absl::Status ImportTreeClassifier(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> labels, node.IntsOr("classlabels_int64s", {}));
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, node.StringsOr("classlabels_strings", {}));
  const auto classes = static_cast<int64_t>(labels.empty() ? texts.size() : labels.size());
  Forest forest(node, classes, "class");
  RETURN_IF_ERROR(forest.Read());
  if (classes == 2 && forest.only_target().has_value())
    return ImportTwoClasses(node, forest, labels);
  ASSIGN_OR_RETURN(ValueRef scores, Sums(node, forest));
  ASSIGN_OR_RETURN(scores, WithBase(node, scores, classes));
  std::vector<ValueRef> outputs(2);
  if (node.WantsOutput(0)) {
    ASSIGN_OR_RETURN(outputs[0], LabelsOfLargest(node, scores, labels));
  }
  ASSIGN_OR_RETURN(outputs[1], TransformedScores(node, scores));
  return node.SetOutputs(std::move(outputs));
}

constexpr ImportRule kTreeRules[] = {
    {"ai.onnx.ml.TreeEnsembleClassifier", ImportTreeClassifier},
    {"ai.onnx.ml.TreeEnsembleRegressor", ImportTreeRegressor},
};

}  // namespace

absl::Span<const ImportRule> TreeRules() { return kTreeRules; }

}  // namespace npuc::onnx
