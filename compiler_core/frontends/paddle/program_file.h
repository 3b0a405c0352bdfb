#ifndef NPUC_COMPILER_CORE_FRONTENDS_PADDLE_PROGRAM_FILE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_PADDLE_PROGRAM_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::fe::paddle {
class Attribute;
class Operator;
class Program;
}  // namespace npuc::fe::paddle

namespace npuc::paddle {

// Limits on a program; more is a diagnostic.
inline constexpr size_t kMaxProgramBytes = size_t{1} << 28;
inline constexpr int kMaxOperators = 1 << 16;
inline constexpr int kMaxVariables = 1 << 17;
inline constexpr int kMaxArguments = 1 << 12;

// Paddle's number of a data type as the IR's; kInvalid where the IR has none. FP64 is read as f32.
DType DTypeFromWire(int data_type);
std::string DataTypeName(int data_type);

// A read-only view of one operator. Attribute functions return INVALID_ARGUMENT naming the
// attribute where it is of another kind, NOT_FOUND where it is absent.
class OpView {
 public:
  // `version`: of the Paddle that wrote the program.
  OpView(const fe::paddle::Operator* proto, int64_t version);

  absl::string_view type() const { return type_; }
  // The first result, which names the operator in messages.
  const std::string& name() const { return name_; }
  NodeSource source() const { return {name_, type_}; }
  // Version of the Paddle that wrote the program, 2003000 for 2.3.0; 0: unknown.
  int64_t version() const { return version_; }

  // Names by parameter ("X", "Filter"), in the file's order; empty lists are left out.
  using Arguments = std::vector<std::pair<std::string, std::vector<std::string>>>;
  const Arguments& inputs() const { return inputs_; }
  const Arguments& outputs() const { return outputs_; }

  bool HasAttr(absl::string_view name) const { return Find(name) != nullptr; }
  absl::StatusOr<bool> Bool(absl::string_view name) const;
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<double> Float(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view name) const;

 private:
  const fe::paddle::Attribute* Find(absl::string_view name) const;

  const fe::paddle::Operator* proto_;
  int64_t version_;
  std::string type_;
  std::string name_;
  Arguments inputs_;
  Arguments outputs_;
};

// The facts that the program states of a variable.
struct Variable {
  int data_type = -1;
  std::vector<int64_t> dims;  // -1: unknown
  bool is_tensor = false;
  bool is_parameter = false;
  int lod_level = 0;
};

// A parsed program: its first block, in which feed and fetch are inputs and outputs.
class ProgramFile {
 public:
  // Null: what is wrong was reported.
  static std::unique_ptr<ProgramFile> Parse(absl::string_view bytes, absl::string_view file,
                                            Diagnostics& diagnostics);
  ~ProgramFile();

  const std::vector<OpView>& ops() const { return ops_; }  // without feed and fetch
  const std::map<std::string, Variable, std::less<>>& variables() const { return variables_; }
  const Variable* FindVariable(absl::string_view name) const;
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  std::string producer() const;

 private:
  ProgramFile();
  bool Read(absl::string_view file, Diagnostics& diagnostics);

  std::unique_ptr<fe::paddle::Program> proto_;
  std::vector<OpView> ops_;
  std::map<std::string, Variable, std::less<>> variables_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
};

}  // namespace npuc::paddle

#endif  // NPUC_COMPILER_CORE_FRONTENDS_PADDLE_PROGRAM_FILE_H_
