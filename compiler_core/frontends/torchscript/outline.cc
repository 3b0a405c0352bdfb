#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/archive.h"
#include "compiler_core/frontends/torchscript/code_library.h"
#include "compiler_core/frontends/torchscript/import.h"
#include "compiler_core/frontends/torchscript/parameter_type.h"
#include "compiler_core/frontends/torchscript/parser.h"

namespace npuc {
namespace pt {
namespace {

// "torch.conv2d" of the callee's expression; empty where it is no dotted name.
std::string DottedName(const Expr& expr) {
  if (expr.kind == ExprKind::kName) return std::string(expr.text);
  if (expr.kind != ExprKind::kAttribute || expr.children.empty()) return "";
  std::string base = DottedName(*expr.children[0]);
  return base.empty() ? base : absl::StrCat(base, ".", expr.text);
}

// Counts calls of torch's functions in code. Trees are no deeper than CodeLimits allows.
class CallCounter {
 public:
  explicit CallCounter(std::map<std::string, int64_t>& counts) : counts_(counts) {}

  void CountBlock(const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      for (const ExprPtr& target : stmt.targets) CountExpr(target.get());
      CountExpr(stmt.value.get());
      CountBlock(stmt.body);
      CountBlock(stmt.orelse);
    }
  }

 private:
  void CountExpr(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kCall) {
      const std::string name = DottedName(*expr->children[0]);
      const bool is_tensor_function =
          absl::StartsWith(name, "torch.") || absl::StartsWith(name, "ops.");
      if (is_tensor_function && !absl::StartsWith(name, "torch.nn.")) ++counts_[name];
    }
    for (const ExprPtr& child : expr->children) CountExpr(child.get());
  }

  std::map<std::string, int64_t>& counts_;
};

// A parameter, or each item of a tuple; of a list the first one, since the type does not tell how
// many it has.
void AddInput(const Expr* type, const std::string& key, const std::string& name,
              bool may_be_left_out, ModelOutline& outline) {
  constexpr size_t kMost = 1024;
  if (outline.inputs.size() >= kMost) return;
  const absl::string_view outer = TypeNameOf(type);
  while (type != nullptr && type->kind == ExprKind::kSubscript &&
         type->children[0]->text == "Optional") {
    type = type->children[1].get();
  }
  if (type != nullptr && type->kind == ExprKind::kSubscript &&
      (outer == "Tuple" || outer == "List")) {
    const Expr& inner = *type->children[1];
    const bool is_row = outer == "Tuple" && inner.kind == ExprKind::kTuple;
    for (size_t i = 0; i < (is_row ? inner.children.size() : 1); ++i) {
      AddInput(is_row ? inner.children[i].get() : &inner, absl::StrCat(key, ".", i),
               absl::StrCat(name, "_", i), may_be_left_out, outline);
    }
    return;
  }
  ModelOutline::Port port{.key = key, .name = name};
  port.is_tensor = outer == "Tensor" || outer == "Optional";
  port.type = port.is_tensor ? "" : Printable(outer);
  port.may_be_left_out = may_be_left_out;
  outline.inputs.push_back(std::move(port));
}

// The columns of matrices that Linear layers have, then the rows of those that a row is multiplied
// by as they are.
void AddMatrixColumns(const PyValues& values, ModelOutline& outline) {
  constexpr size_t kMost = 16;  // of each
  std::vector<int64_t>& columns = outline.matrix_columns;
  for (const size_t axis : {1, 0}) {
    size_t left = kMost;
    for (int i = 0; i < values.size() && left > 0; ++i) {
      const PyId id(i);
      if (values.kind(id) != PyKind::kTensor || values.tensor(id).sizes.size() != 2) continue;
      const int64_t count = values.tensor(id).sizes[axis];
      if (count < 1 || std::find(columns.begin(), columns.end(), count) != columns.end()) continue;
      columns.push_back(count);
      --left;
    }
  }
}

void AddInputs(const FunctionDef& forward, ModelOutline& outline) {
  for (size_t i = 1; i < forward.parameters.size(); ++i) {  // without self
    const Parameter& parameter = forward.parameters[i];
    AddInput(parameter.type.get(), absl::StrCat(i - 1), std::string(parameter.name),
             parameter.fallback != nullptr, outline);
  }
}

}  // namespace
}  // namespace pt

absl::StatusOr<ModelOutline> OutlineTorchScript(absl::string_view model_bytes,
                                                absl::string_view file, Diagnostics& diagnostics) {
  Diagnostics found;
  const absl::StatusOr<pt::TorchArchive> archive =
      pt::ReadTorchArchive(model_bytes, file, pt::ArchiveLimits(), found);
  ModelOutline outline;
  outline.operators_are = "calls in the code";
  if (archive.ok()) {
    outline.producer = absl::StrCat("archive version ", archive->version);
    pt::CodeLibrary library(&*archive, &found);
    const std::string& root = archive->values.object(archive->root).class_name;
    const pt::CodeLibrary::Found root_class = library.Find(root);
    if (root_class.class_def != nullptr) {
      for (const pt::FunctionDef& method : root_class.class_def->methods) {
        if (method.name == "forward") pt::AddInputs(method, outline);
      }
    }
    for (const pt::SourceFile& source : archive->sources) {
      const pt::ParsedCode parsed = pt::ParseCode(source.text);
      if (parsed.code == nullptr) continue;  // the import says what is wrong
      pt::CallCounter counter(outline.operators);
      for (const pt::FunctionDef& function : parsed.code->functions) {
        counter.CountBlock(function.body);
      }
      for (const pt::ClassDef& class_def : parsed.code->classes) {
        for (const pt::FunctionDef& method : class_def.methods) counter.CountBlock(method.body);
      }
    }
    pt::AddMatrixColumns(archive->values, outline);
    for (size_t i = 0; i < archive->values.storages().size(); ++i) {
      outline.weights += archive->values.storages()[i].element_count;
      outline.weight_bytes += static_cast<int64_t>(archive->storage_bytes[i].bytes.size());
    }
  }
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  return outline;
}

}  // namespace npuc
