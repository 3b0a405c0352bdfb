#include "compiler_core/frontends/paddle/program_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/sniff.h"
#include "npuc/fe/paddle/program.pb.h"

namespace npuc::paddle {
namespace {

constexpr char kExportFix[] = "export the model again with paddle.jit.save or save_inference_model";

// Numbers of AttrType.
constexpr int kIntType = 0;
constexpr int kFloatType = 1;
constexpr int kStringType = 2;
constexpr int kIntsType = 3;
constexpr int kFloatsType = 4;
constexpr int kBooleanType = 6;
constexpr int kLongType = 9;
constexpr int kLongsType = 11;
constexpr int kFloat64sType = 12;
constexpr int kFloat64Type = 15;
// A number of VarType.
constexpr int kLodTensor = 7;

absl::Status WrongKind(absl::string_view name, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", Printable(name, 80), "' is not of kind ", wanted));
}

absl::Status Missing(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("attribute '", Printable(name, 80), "' is missing"));
}

template <typename Lists>
OpView::Arguments ArgumentsOf(const Lists& lists) {
  OpView::Arguments all;
  for (const auto& list : lists) {
    if (list.arguments().empty()) continue;
    all.emplace_back(list.parameter(),
                     std::vector<std::string>(list.arguments().begin(), list.arguments().end()));
  }
  return all;
}

}  // namespace

DType DTypeFromWire(int data_type) {
  switch (data_type) {
    case 0:
      return DType::kBool;
    case 1:
      return DType::kInt16;
    case 2:
      return DType::kInt32;
    case 3:
      return DType::kInt64;
    case 4:
      return DType::kFloat16;
    case 5:
    case 6:
      return DType::kFloat32;
    case 20:
      return DType::kUint8;
    case 21:
      return DType::kInt8;
    default:
      return DType::kInvalid;
  }
}

std::string DataTypeName(int data_type) {
  switch (data_type) {
    case 22:
      return "bfloat16";
    case 23:
      return "complex64";
    case 24:
      return "complex128";
    case 25:
      return "string";
    default:
      return absl::StrCat("data type ", data_type);
  }
}

OpView::OpView(const fe::paddle::Operator* proto, int64_t version)
    : proto_(proto),
      version_(std::max<int64_t>(version, 0)),
      type_(proto->type()),
      inputs_(ArgumentsOf(proto->inputs())),
      outputs_(ArgumentsOf(proto->outputs())) {
  // A result that is a dummy, as reshape2's XShape, names an operator only where there is no other.
  for (const auto& [parameter, names] : outputs_) {
    if (name_.empty() || parameter == "Out" || parameter == "Y" || parameter == "Output") {
      name_ = names[0];
    }
  }
}

const fe::paddle::Attribute* OpView::Find(absl::string_view name) const {
  const auto& all = proto_->attributes();
  const auto found = std::find_if(all.begin(), all.end(), [name](const auto& a) {
    return absl::string_view(a.name()) == name;
  });
  return found == all.end() ? nullptr : &*found;
}

absl::StatusOr<bool> OpView::Bool(absl::string_view name) const {
  const fe::paddle::Attribute* a = Find(name);
  if (a == nullptr) return Missing(name);
  if (a->type() == kIntType) return a->i() != 0;
  if (a->type() != kBooleanType) return WrongKind(name, "boolean");
  return a->b();
}

absl::StatusOr<int64_t> OpView::Int(absl::string_view name) const {
  const fe::paddle::Attribute* a = Find(name);
  if (a == nullptr) return Missing(name);
  if (a->type() == kIntType) return a->i();
  if (a->type() != kLongType) return WrongKind(name, "integer");
  return a->l();
}

absl::StatusOr<double> OpView::Float(absl::string_view name) const {
  const fe::paddle::Attribute* a = Find(name);
  if (a == nullptr) return Missing(name);
  if (a->type() == kFloatType) return a->f();
  if (a->type() == kFloat64Type) return a->float64();
  if (a->type() != kIntType) return WrongKind(name, "float");
  return a->i();
}

absl::StatusOr<std::string> OpView::String(absl::string_view name) const {
  const fe::paddle::Attribute* a = Find(name);
  if (a == nullptr) return Missing(name);
  if (a->type() != kStringType) return WrongKind(name, "text");
  return a->s();
}

absl::StatusOr<std::vector<int64_t>> OpView::Ints(absl::string_view name) const {
  const fe::paddle::Attribute* a = Find(name);
  if (a == nullptr) return Missing(name);
  const auto list = [](const auto& values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  std::vector<int64_t> values;
  if (a->type() == kIntsType) {
    values = list(a->ints());
  } else if (a->type() == kLongsType) {
    values = list(a->longs());
  } else if (a->type() == kIntType) {
    values = {a->i()};
  } else {
    return WrongKind(name, "list of integers");
  }
  if (values.size() > kMaxArguments) return WrongKind(name, "short list of integers");
  return values;
}

absl::StatusOr<std::vector<double>> OpView::Floats(absl::string_view name) const {
  const fe::paddle::Attribute* a = Find(name);
  if (a == nullptr) return Missing(name);
  std::vector<double> values;
  if (a->type() == kFloatsType) {
    values.assign(a->floats().begin(), a->floats().end());
  } else if (a->type() == kFloat64sType) {
    values.assign(a->float64s().begin(), a->float64s().end());
  } else if (a->type() == kFloatType) {
    values = {a->f()};
  } else if (a->type() != kIntsType || !a->ints().empty()) {  // no value has no kind
    return WrongKind(name, "list of floats");
  }
  if (values.size() > kMaxArguments) return WrongKind(name, "short list of floats");
  return values;
}

ProgramFile::ProgramFile() : proto_(std::make_unique<fe::paddle::Program>()) {}
ProgramFile::~ProgramFile() = default;

const Variable* ProgramFile::FindVariable(absl::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

std::string ProgramFile::producer() const {
  const int64_t version = proto_->version().version();  // 2003000: 2.3.0
  if (version <= 0) return "PaddlePaddle";
  return absl::StrCat("PaddlePaddle ", version / 1000000, ".", version / 1000 % 1000, ".",
                      version % 1000);
}

std::unique_ptr<ProgramFile> ProgramFile::Parse(absl::string_view bytes, absl::string_view file,
                                                Diagnostics& diagnostics) {
  if (bytes.empty()) {
    return RefuseFile(DiagnosticKind::kEmptyModel, file, "the model file is empty", kExportFix,
                      diagnostics);
  }
  if (bytes.size() > kMaxProgramBytes) {
    return RefuseFile(
        DiagnosticKind::kModelLimitExceeded, file,
        absl::StrCat("the program has ", bytes.size(), " bytes; allowed are ", kMaxProgramBytes),
        "compile a smaller model", diagnostics);
  }
  std::unique_ptr<ProgramFile> program(new ProgramFile());
  const bool is_parsed =
      program->proto_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!is_parsed || !IsPaddleProgram(bytes)) {
    FileGuess guess = GuessFileKind(bytes);
    if (guess.what == "JSON") {
      guess.fix = "export it without the new format (PIR): FLAGS_enable_pir_api=0";
    }
    if (guess.what.empty() || IsPaddleProgram(bytes)) {
      guess = {"a damaged file or one of another format", kExportFix};
    }
    return RefuseFile(
        DiagnosticKind::kNotAPaddleProgram, file,
        absl::StrCat("the file is no program of PaddlePaddle; it looks like ", guess.what),
        guess.fix, diagnostics);
  }
  return program->Read(file, diagnostics) ? std::move(program) : nullptr;
}

bool ProgramFile::Read(absl::string_view file, Diagnostics& diagnostics) {
  const fe::paddle::Block& block = proto_->blocks(0);
  const auto refuse = [&](std::string message) {
    (void)RefuseFile(DiagnosticKind::kModelLimitExceeded, file, std::move(message),
                     "compile a smaller model", diagnostics);
    return false;
  };
  if (block.operators_size() > kMaxOperators || block.variables_size() > kMaxVariables) {
    return refuse(absl::StrCat("the program has ", block.operators_size(), " operators and ",
                               block.variables_size(), " variables; allowed are ", kMaxOperators,
                               " and ", kMaxVariables));
  }
  for (const fe::paddle::Variable& proto : block.variables()) {
    Variable variable;
    variable.is_tensor = proto.type().type() == kLodTensor;
    const fe::paddle::TensorDesc& tensor = proto.type().lod_tensor().tensor();
    variable.data_type = tensor.data_type();
    variable.dims.assign(tensor.dims().begin(), tensor.dims().end());
    variable.is_parameter = proto.persistable() && variable.is_tensor;
    variable.lod_level = proto.type().lod_tensor().lod_level();
    variables_.emplace(proto.name(), std::move(variable));
  }
  std::map<int64_t, std::string> inputs;  // by their numbers
  std::map<int64_t, std::string> outputs;
  for (const fe::paddle::Operator& proto : block.operators()) {
    OpView op(&proto, proto_->version().version());
    size_t arguments = 0;
    size_t longest = proto.type().size();
    for (const auto* lists : {&op.inputs(), &op.outputs()}) {
      for (const auto& [parameter, names] : *lists) {
        arguments += names.size();
        for (const std::string& name : names) longest = std::max(longest, name.size());
      }
    }
    if (arguments > kMaxArguments || longest > kMaxNodeNameBytes) {
      return refuse(absl::StrCat("an operator has ", arguments, " arguments, or a name of ",
                                 longest, " bytes; allowed are ", kMaxArguments, " and ",
                                 kMaxNodeNameBytes));
    }
    const bool is_feed = op.type() == "feed";
    if (!is_feed && op.type() != "fetch") {
      ops_.push_back(std::move(op));
      continue;
    }
    const OpView::Arguments& named = is_feed ? op.outputs() : op.inputs();
    const int64_t column = op.Int("col").value_or(0);
    if (!named.empty()) (is_feed ? inputs : outputs).emplace(column, named[0].second[0]);
  }
  for (auto& [column, name] : inputs) inputs_.push_back(std::move(name));
  for (auto& [column, name] : outputs) outputs_.push_back(std::move(name));
  return true;
}

}  // namespace npuc::paddle
