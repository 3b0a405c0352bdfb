#include "compiler_core/quant/data/numpy_pickle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/pickle_code.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

using PickleKind = PickleNode::Kind;
using PickleId = PickleTree::Id;

enum class PickleFunction : int32_t { kArrayClass, kTypeClass, kReconstruct, kScalar, kFromBuffer };
constexpr struct {
  absl::string_view name;
  PickleFunction function;
} kPickleFunctions[] = {{"numpy ndarray", PickleFunction::kArrayClass},
                        {"numpy dtype", PickleFunction::kTypeClass},
                        {"numpy.core.multiarray _reconstruct", PickleFunction::kReconstruct},
                        {"numpy._core.multiarray _reconstruct", PickleFunction::kReconstruct},
                        {"numpy.core.multiarray scalar", PickleFunction::kScalar},
                        {"numpy._core.multiarray scalar", PickleFunction::kScalar},
                        {"numpy.core.numeric _frombuffer", PickleFunction::kFromBuffer},
                        {"numpy._core.numeric _frombuffer", PickleFunction::kFromBuffer}};

// A dtype's number: its element type, or this.
constexpr int32_t kObjectType = -2;
constexpr struct {
  absl::string_view code;
  int32_t type;
} kPickleTypes[] = {
    {"f2", static_cast<int32_t>(DType::kFloat16)}, {"f4", static_cast<int32_t>(DType::kFloat32)},
    {"f8", static_cast<int32_t>(DType::kFloat64)}, {"i1", static_cast<int32_t>(DType::kInt8)},
    {"i2", static_cast<int32_t>(DType::kInt16)},   {"i4", static_cast<int32_t>(DType::kInt32)},
    {"i8", static_cast<int32_t>(DType::kInt64)},   {"u1", static_cast<int32_t>(DType::kUint8)},
    {"u2", static_cast<int32_t>(DType::kUint16)},  {"O8", kObjectType}};

constexpr size_t kMostPickleValues = size_t{1} << 22;
constexpr size_t kMostPickleArrays = size_t{1} << 18;
constexpr size_t kMostPickleMarks = 1024;

// Runs one pickle: a stack of ids, marks in it, and a memo.
class PickleReader {
 public:
  explicit PickleReader(absl::string_view bytes) : code_(bytes) {}

  absl::StatusOr<PickleTree> Run() {
    while (true) {
      const absl::Status read = code_.Next(now_);
      if (!read.ok()) return Wrong(read.message());
      if (now_.opcode == pickle::kStop) break;
      RETURN_IF_ERROR(Step());
      if (tree_.nodes.size() > kMostPickleValues || memo_.size() > kMostPickleValues ||
          tree_.arrays.size() > kMostPickleArrays || marks_.size() > kMostPickleMarks) {
        return Wrong(absl::StrCat("it has more than ", kMostPickleValues, " values, ",
                                  kMostPickleArrays, " arrays or ", kMostPickleMarks, " levels"));
      }
    }
    ASSIGN_OR_RETURN(tree_.root, Pop());
    if (tree_.kind(tree_.root) == PickleKind::kFunction ||
        tree_.kind(tree_.root) == PickleKind::kType) {
      return Wrong("it ends with a function");
    }
    return std::move(tree_);
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("not a usable pickle, byte ", now_.at, ": ", what));
  }

  absl::Status Push(PickleId id) {
    stack_.push_back(id);
    return absl::OkStatus();
  }
  absl::Status PushNode(PickleNode node) {
    tree_.nodes.push_back(node);
    return Push(static_cast<PickleId>(tree_.nodes.size() - 1));
  }
  absl::Status PushNumber(double number) { return PushNode({PickleKind::kNumber, -1, number}); }
  absl::Status PushText(absl::string_view text) {
    tree_.texts.emplace_back(text);
    return PushNode({PickleKind::kText, static_cast<int32_t>(tree_.texts.size() - 1)});
  }
  absl::Status PushList(PickleKind kind, std::vector<PickleId> items) {
    tree_.lists.push_back(std::move(items));
    return PushNode({kind, static_cast<int32_t>(tree_.lists.size() - 1)});
  }
  absl::Status PushArray(NpyArray array) {
    tree_.arrays.push_back(std::move(array));
    return PushNode({PickleKind::kArray, static_cast<int32_t>(tree_.arrays.size() - 1)});
  }

  // Values below the topmost mark are out of reach until it is popped.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  absl::StatusOr<PickleId> Pop() {
    if (stack_.size() <= Floor()) return Wrong("its stack is empty");
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  absl::StatusOr<std::vector<PickleId>> PopToMark() {
    if (marks_.empty()) return Wrong("it has no mark");
    const auto start = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleId> items(start, stack_.end());
    stack_.erase(start, stack_.end());
    marks_.pop_back();
    return items;
  }
  absl::StatusOr<std::vector<PickleId>> PopCount(size_t count) {
    if (stack_.size() - Floor() < count) return Wrong("its stack is empty");
    std::vector<PickleId> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  absl::Status Put(uint64_t index) {
    if (index > memo_.size()) return Wrong("it skips places of its memo");
    if (stack_.size() <= Floor()) return Wrong("its stack is empty");
    if (index == memo_.size()) memo_.push_back(stack_.back());
    memo_[index] = stack_.back();
    return absl::OkStatus();
  }
  absl::Status Get(uint64_t index) {
    if (index >= memo_.size()) return Wrong("its memo has no such place");
    // Repeated, it would grow the stack without limit.
    if (stack_.size() > kMostPickleValues) return Wrong("its stack is too high");
    return Push(memo_[index]);
  }

  // Appends to the list or dict on top.
  absl::Status Extend(PickleKind kind, const std::vector<PickleId>& items) {
    if (stack_.size() <= Floor() || tree_.kind(stack_.back()) != kind) {
      return Wrong("it fills what is no list or dict");
    }
    if (kind == PickleKind::kDict && items.size() % 2 != 0) return Wrong("a key has no value");
    std::vector<PickleId>& list =
        tree_.lists[static_cast<size_t>(tree_.nodes[static_cast<size_t>(stack_.back())].index)];
    list.insert(list.end(), items.begin(), items.end());
    return absl::OkStatus();
  }

  absl::Status Step() {
    switch (now_.opcode) {
      case pickle::kProto:
      case pickle::kFrame:
        return absl::OkStatus();
      case pickle::kMark:
        marks_.push_back(stack_.size());
        return absl::OkStatus();
      case pickle::kNone:
        return PushNode({});
      case pickle::kTrue:
      case pickle::kFalse:
        return PushNumber(now_.opcode == pickle::kTrue ? 1 : 0);
      case pickle::kInt:
      case pickle::kInt1:
      case pickle::kInt2:
      case pickle::kLong1:
        return PushNumber(static_cast<double>(now_.integer));
      case pickle::kFloat:
        return PushNumber(now_.real);
      case pickle::kBytes1:
      case pickle::kText1:
      case pickle::kBytes4:
      case pickle::kText4:
      case pickle::kBytes8:
      case pickle::kByteArray8:
      case pickle::kText8:
        return PushText(now_.text);
      case pickle::kMemoize:
        return Put(memo_.size());
      case pickle::kPut1:
      case pickle::kPut4:
        return Put(static_cast<uint64_t>(now_.integer));
      case pickle::kGet1:
      case pickle::kGet4:
        return Get(static_cast<uint64_t>(now_.integer));
      default:
        return ContainerStep(now_.opcode);
    }
  }

  absl::Status ContainerStep(uint8_t opcode) {
    switch (opcode) {
      case pickle::kEmptyTuple:
      case pickle::kEmptyList:
        return PushList(PickleKind::kList, {});
      case pickle::kEmptyDict:
        return PushList(PickleKind::kDict, {});
      case pickle::kTuple1:
      case pickle::kTuple2:
      case pickle::kTuple3: {
        ASSIGN_OR_RETURN(std::vector<PickleId> items, PopCount(opcode - pickle::kTuple1 + 1));
        return PushList(PickleKind::kList, std::move(items));
      }
      case pickle::kTuple: {
        ASSIGN_OR_RETURN(std::vector<PickleId> items, PopToMark());
        return PushList(PickleKind::kList, std::move(items));
      }
      case pickle::kAppend:
      case pickle::kSetItem: {
        ASSIGN_OR_RETURN(const std::vector<PickleId> items,
                         PopCount(opcode == pickle::kAppend ? 1 : 2));
        return Extend(opcode == pickle::kAppend ? PickleKind::kList : PickleKind::kDict, items);
      }
      case pickle::kAppends:
      case pickle::kSetItems: {
        ASSIGN_OR_RETURN(const std::vector<PickleId> items, PopToMark());
        return Extend(opcode == pickle::kAppends ? PickleKind::kList : PickleKind::kDict, items);
      }
      case pickle::kGlobal:
        return PushFunction(absl::StrCat(now_.text, " ", now_.name));
      case pickle::kStackGlobal: {
        ASSIGN_OR_RETURN(const std::vector<PickleId> names, PopCount(2));
        if (tree_.kind(names[0]) != PickleKind::kText ||
            tree_.kind(names[1]) != PickleKind::kText) {
          return Wrong("a function's name is no text");
        }
        return PushFunction(absl::StrCat(tree_.text(names[0]), " ", tree_.text(names[1])));
      }
      case pickle::kReduce: {
        ASSIGN_OR_RETURN(const std::vector<PickleId> call, PopCount(2));
        return Call(call[0], call[1]);
      }
      case pickle::kBuild: {
        ASSIGN_OR_RETURN(const std::vector<PickleId> build, PopCount(2));
        return Build(build[0], build[1]);
      }
      default:
        return Wrong(absl::StrCat("it has the instruction ", opcode,
                                  ", which no pickle of numbers and NumPy's arrays needs"));
    }
  }

  absl::Status PushFunction(const std::string& name) {
    for (const auto& known : kPickleFunctions) {
      if (known.name == name) {
        return PushNode({PickleKind::kFunction, static_cast<int32_t>(known.function)});
      }
    }
    return Wrong(absl::StrCat("it calls '", Printable(name, 80),
                              "'; allowed are the functions that make NumPy's arrays"));
  }

  absl::Status Call(PickleId function, PickleId arguments) {
    if (tree_.kind(function) != PickleKind::kFunction ||
        tree_.kind(arguments) != PickleKind::kList) {
      return Wrong("it calls what is no function");
    }
    const std::vector<PickleId>& items = tree_.items(arguments);
    switch (static_cast<PickleFunction>(tree_.nodes[static_cast<size_t>(function)].index)) {
      case PickleFunction::kReconstruct:
        return PushArray({DType::kFloat32, {0}, ""});
      case PickleFunction::kTypeClass:
        return CallType(items);
      case PickleFunction::kScalar:
        if (items.size() != 2) return Wrong("a scalar takes a type and bytes");
        return PushElements(items[0], {}, items[1]);
      case PickleFunction::kFromBuffer: {
        if (items.size() != 4) return Wrong("an array takes bytes, a type, a shape and an order");
        std::vector<int64_t> shape;
        RETURN_IF_ERROR(ReadShape(items[2], shape));
        return PushElements(items[1], std::move(shape), items[0]);
      }
      case PickleFunction::kArrayClass:
        break;
    }
    return Wrong("it calls a class that no array is made by");
  }

  absl::Status CallType(const std::vector<PickleId>& items) {
    if (items.empty() || tree_.kind(items[0]) != PickleKind::kText)
      return Wrong("a type has no code");
    for (const auto& known : kPickleTypes) {
      if (known.code == tree_.text(items[0])) return PushNode({PickleKind::kType, known.type});
    }
    return Wrong(absl::StrCat("an array has the type '", Printable(tree_.text(items[0]), 20),
                              "'; allowed are f2, f4, f8, i1, i2, i4, i8, u1, u2"));
  }

  absl::Status ReadShape(PickleId id, std::vector<int64_t>& shape) {
    if (tree_.kind(id) != PickleKind::kList || tree_.items(id).size() > kMaxNpyRank) {
      return Wrong("a shape is no tuple of at most 32 numbers");
    }
    int64_t count = 1;
    for (const PickleId item : tree_.items(id)) {
      const double size = tree_.kind(item) == PickleKind::kNumber ? tree_.number(item) : -1;
      if (!(size >= 0 && size <= static_cast<double>(code_.size()))) {
        return Wrong("a dimension is no number, or beyond the file's size");
      }
      shape.push_back(static_cast<int64_t>(size));
      if (shape.back() > 0 && count > static_cast<int64_t>(code_.size()) / shape.back()) {
        return Wrong("an array is beyond the file's size");
      }
      count *= std::max<int64_t>(shape.back(), 1);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<NpyArray> Elements(PickleId type, std::vector<int64_t> shape, PickleId bytes) {
    if (tree_.kind(type) != PickleKind::kType || tree_.kind(bytes) != PickleKind::kText) {
      return Wrong("an array has no type, or no bytes");
    }
    const int32_t number = tree_.nodes[static_cast<size_t>(type)].index;
    if (number == kObjectType) return Wrong("an array of objects has bytes");
    NpyArray array{static_cast<DType>(number), std::move(shape), tree_.text(bytes)};
    if (static_cast<int64_t>(array.bytes.size()) != array.element_count() * SizeOf(array.dtype)) {
      return Wrong("an array's bytes do not fit its shape");
    }
    held_bytes_ += array.bytes.size();
    if (held_bytes_ > 2 * code_.size()) return Wrong("its arrays share their bytes");
    return array;
  }
  absl::Status PushElements(PickleId type, std::vector<int64_t> shape, PickleId bytes) {
    ASSIGN_OR_RETURN(NpyArray array, Elements(type, std::move(shape), bytes));
    return PushArray(std::move(array));
  }

  // Fills an array, or gives a type its byte order.
  absl::Status Build(PickleId target, PickleId state) {
    if (tree_.kind(state) != PickleKind::kList) return Wrong("a state is no tuple");
    const std::vector<PickleId>& items = tree_.items(state);
    const PickleKind kind = tree_.kind(target);
    if (kind == PickleKind::kType) {
      if (items.size() < 2 || tree_.kind(items[1]) != PickleKind::kText ||
          tree_.text(items[1]) == ">") {
        return Wrong("a type has another byte order than little-endian");
      }
      return Push(target);
    }
    if (kind != PickleKind::kArray || items.size() != 5) return Wrong("a state is not an array's");
    std::vector<int64_t> shape;
    RETURN_IF_ERROR(ReadShape(items[1], shape));
    const bool is_objects = tree_.kind(items[2]) == PickleKind::kType &&
                            tree_.nodes[static_cast<size_t>(items[2])].index == kObjectType;
    if (is_objects) {
      if (!shape.empty() || tree_.kind(items[4]) != PickleKind::kList ||
          tree_.items(items[4]).size() != 1) {
        return Wrong("an array of objects holds more than one");
      }
      tree_.nodes[static_cast<size_t>(target)] =
          tree_.nodes[static_cast<size_t>(tree_.items(items[4])[0])];
      return Push(target);
    }
    if (shape.size() > 1 && tree_.number(items[3]) != 0)
      return Wrong("an array is in Fortran order");
    ASSIGN_OR_RETURN(NpyArray array, Elements(items[2], std::move(shape), items[4]));
    tree_.arrays[static_cast<size_t>(tree_.nodes[static_cast<size_t>(target)].index)] =
        std::move(array);
    return Push(target);
  }

  pickle::CodeReader code_;
  pickle::Instruction now_;
  size_t held_bytes_ = 0;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;
  std::vector<PickleId> memo_;
  PickleTree tree_;
};

constexpr absl::string_view kNpyMagic = "\x93NUMPY";

void AppendLittle(std::string& out, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

}  // namespace

PickleTree::Id PickleTree::Find(PickleId dict, absl::string_view key) const {
  const std::vector<PickleId>& all = items(dict);
  for (size_t i = all.size(); i >= 2; i -= 2) {
    if (kind(all[i - 2]) == PickleNode::Kind::kText && text(all[i - 2]) == key) return all[i - 1];
  }
  return -1;
}

bool IsNumpyPickle(absl::string_view file) {
  return absl::StartsWith(file, kNpyMagic) || absl::StartsWith(file, "\x80");
}

absl::StatusOr<PickleTree> ReadNumpyPickle(absl::string_view file) {
  if (!absl::StartsWith(file, kNpyMagic)) return PickleReader(file).Run();
  ASSIGN_OR_RETURN(const NpyStart start, ReadNpyStart(file));
  if (!absl::StrContains(start.dictionary, "'|O'")) {
    return absl::InvalidArgumentError("a dict is needed; the .npy file holds numbers");
  }
  return PickleReader(file.substr(start.data_offset)).Run();
}

// Protocol 3, as numpy.save writes.
NumpyPickleWriter::NumpyPickleWriter() {
  std::string header = "{'descr': '|O', 'fortran_order': False, 'shape': (), }";
  constexpr size_t kPrefix = 10;
  while ((kPrefix + header.size() + 1) % 64 != 0) header.push_back(' ');
  out_ = absl::StrCat(kNpyMagic, absl::string_view("\1\0", 2));
  AppendLittle(out_, header.size() + 1, 2);
  absl::StrAppend(&out_, header, "\n\x80\x03");
  BeginArray();
  absl::StrAppend(&out_, "(K\x01)");
  Type("O8", '|', true);
  absl::StrAppend(&out_, "\x89]");
}

// An array without elements; its state follows, and 'b'.
void NumpyPickleWriter::BeginArray() {
  absl::StrAppend(&out_, "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n",
                  absl::string_view("K\0\x85", 3),
                  "C\x01"
                  "b\x87R");
}

void NumpyPickleWriter::Type(absl::string_view code, char byte_order, bool has_objects) {
  absl::StrAppend(&out_, "cnumpy\ndtype\n");
  Text(code);
  absl::StrAppend(&out_, "\x89\x88\x87R(K\x03");
  Text(absl::string_view(&byte_order, 1));
  absl::StrAppend(&out_, "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff",
                  absl::string_view(has_objects ? "K\x3f" : "K\0", 2), "tb");
}

void NumpyPickleWriter::OpenDict() { absl::StrAppend(&out_, "}("); }

void NumpyPickleWriter::CloseDict() { out_.push_back('u'); }

void NumpyPickleWriter::Text(absl::string_view text) {
  out_.push_back('X');
  AppendLittle(out_, text.size(), 4);
  absl::StrAppend(&out_, text);
}

void NumpyPickleWriter::Number(double number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  out_.push_back('G');
  for (int shift = 56; shift >= 0; shift -= 8) out_.push_back(static_cast<char>(bits >> shift));
}

void NumpyPickleWriter::Floats(const std::vector<float>& values) {
  BeginArray();
  absl::StrAppend(&out_, "(K\x01J");
  AppendLittle(out_, values.size(), 4);
  out_.push_back(static_cast<char>(0x85));
  Type("f4", '<', false);
  absl::StrAppend(&out_,
                  "\x89"
                  "B");
  AppendLittle(out_, values.size() * sizeof(float), 4);
  out_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  absl::StrAppend(&out_, "tb");
}

std::string NumpyPickleWriter::Take() {
  absl::StrAppend(&out_, "atb.");
  return std::move(out_);
}

}  // namespace npuc
