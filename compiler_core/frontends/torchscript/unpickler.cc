#include "compiler_core/frontends/torchscript/unpickler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace npuc::pt {
absl::string_view NameOf(PickleItem::Tag tag) {
  switch (tag) {
    case PickleItem::kEmpty:
    case PickleItem::kValue:
      return "a value";
    case PickleItem::kArguments:
      return "the arguments of a call";
    case PickleItem::kGlobalTag:
      return "a class or function";
    case PickleItem::kStorage:
      return "a storage";
    case PickleItem::kStorageType:
      return "a storage type";
    case PickleItem::kQuantizer:
      return "a quantization scheme";
  }
  return "nothing";
}

bool Unpickler::Fail(DiagnosticKind kind, const std::string& message, std::string fix) {
  diagnostics_.Add(
      {.kind = kind,
       .message = absl::StrCat("entry '", Printable(entry_), "', byte ", opcode_at_, ": ", message),
       .file = file_,
       .fix = std::move(fix)});
  return false;
}

bool Unpickler::Malformed(const std::string& message) {
  return Fail(DiagnosticKind::kTorchPickleMalformed, message);
}

bool Unpickler::OverLimit(absl::string_view what, int64_t limit) {
  return Fail(DiagnosticKind::kTorchArchiveLimit,
              absl::StrCat("the pickle has more than ", limit, " ", what, ", which is the limit"),
              "compile a smaller model");
}

bool Unpickler::Push(Item item) {
  if (static_cast<int64_t>(stack_.size() + marks_.size()) >= limits_.stack) {
    return OverLimit("values and marks on its stack", limits_.stack);
  }
  stack_.push_back(item);
  return true;
}

bool Unpickler::Pop(Item& item) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) return Malformed("an instruction takes a value and there is none");
  item = stack_.back();
  stack_.pop_back();
  return true;
}

bool Unpickler::AsValue(const Item& item, absl::string_view what, PyId& id) {
  if (item.tag != Item::kValue) {
    return Malformed(absl::StrCat(what, " is ", NameOf(item.tag), "; allowed is a value"));
  }
  id = PyId(item.index);
  return true;
}

bool Unpickler::PopValue(absl::string_view what, PyId& id) {
  Item item;
  return Pop(item) && AsValue(item, what, id);
}

bool Unpickler::PopToMark(size_t& start) {
  if (marks_.empty()) return Malformed("an instruction looks for a mark and there is none");
  start = marks_.back();
  marks_.pop_back();
  return true;
}

bool Unpickler::Put(int64_t index) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) return Malformed("a value is to be remembered and there is none");
  if (index >= limits_.memo) {
    return Fail(DiagnosticKind::kTorchArchiveLimit,
                absl::StrCat("a value is remembered under number ", index,
                             "; allowed are numbers below ", limits_.memo),
                "compile a smaller model");
  }
  const auto place = static_cast<size_t>(index);
  if (place >= memo_.size()) memo_.resize(place + 1);
  memo_[place] = stack_.back();
  return true;
}

bool Unpickler::Get(int64_t index) {
  const auto place = static_cast<size_t>(index);
  if (place >= memo_.size() || memo_[place].tag == Item::kEmpty) {
    return Malformed(absl::StrCat("value number ", index, " is used but was never remembered"));
  }
  return Push(memo_[place]);
}

bool Unpickler::Charge(size_t items) {
  items_held_ += static_cast<int64_t>(items);
  return items_held_ <= limits_.values || OverLimit("values", limits_.values);
}

bool Unpickler::ChargeString(size_t bytes) {
  string_bytes_ += static_cast<int64_t>(bytes);
  return string_bytes_ <= limits_.string_bytes ||
         OverLimit("bytes in strings", limits_.string_bytes);
}

bool Unpickler::PushNew(PyValues::Value value) {
  if (!Charge(1)) return false;
  values_.values_.push_back(value);
  return PushValue(PyId(static_cast<int32_t>(values_.values_.size() - 1)));
}

bool Unpickler::PushLast(PyKind kind, size_t table_size) {
  PyValues::Value value;
  value.kind = kind;
  value.index = static_cast<int32_t>(table_size - 1);
  return PushNew(value);
}

bool Unpickler::PushInteger(int64_t value) {
  PyValues::Value v;
  v.kind = PyKind::kInt;
  v.integer = value;
  return PushNew(v);
}

bool Unpickler::PushString(absl::string_view text, PyKind kind) {
  if (!ChargeString(text.size())) return false;
  values_.strings_.emplace_back(text);
  return PushLast(kind, values_.strings_.size());
}

// Replaces the stack's items from `start` on by one tuple or list of them.
bool Unpickler::PushSequence(PyKind kind, size_t start) {
  const absl::Span<const Item> items = absl::MakeConstSpan(stack_).subspan(start);
  if (!Charge(items.size())) return false;
  const bool all_values =
      std::all_of(items.begin(), items.end(), [](const Item& i) { return i.tag == Item::kValue; });
  if (!all_values) {
    if (kind != PyKind::kTuple) return Malformed("a list holds what is no value");
    argument_tuples_.emplace_back(items.begin(), items.end());
    stack_.resize(start);
    return Push(
        {.tag = Item::kArguments, .index = static_cast<int32_t>(argument_tuples_.size() - 1)});
  }
  PyValues::Sequence& sequence = values_.sequences_.emplace_back();
  sequence.items.reserve(items.size());
  for (const Item& item : items) sequence.items.push_back(PyId(item.index));
  stack_.resize(start);
  return PushLast(kind, values_.sequences_.size());
}

bool Unpickler::Step(const Instruction& code) {
  if (++steps_ > limits_.steps) return OverLimit("instructions", limits_.steps);
  bool known = true;
  if (!ScalarStep(code, known)) return false;
  if (known) return true;
  if (!ContainerStep(code.opcode, known)) return false;
  if (known) return true;
  if (!CallStep(code, known)) return false;
  if (known) return true;
  const uint8_t opcode = code.opcode;
  const std::string name = opcode > 0x20 && opcode < 0x7f
                               ? absl::StrCat("'", std::string(1, static_cast<char>(opcode)), "'")
                               : absl::StrCat("0x", absl::Hex(opcode, absl::kZeroPad2));
  return Fail(DiagnosticKind::kTorchPickleOpcode,
              absl::StrCat("the pickle uses the instruction ", name,
                           "; allowed are those that torch.jit.save writes"));
}

bool Unpickler::ScalarStep(const Instruction& code, bool& known) {
  known = true;
  PyValues::Value value;
  switch (code.opcode) {
    case pickle::kNone:
      return PushNew(value);
    case pickle::kTrue:
    case pickle::kFalse:
      value.kind = PyKind::kBool;
      value.integer = code.opcode == pickle::kTrue ? 1 : 0;
      return PushNew(value);
    case pickle::kInt:
    case pickle::kInt1:
    case pickle::kInt2:
    case pickle::kLong1:
      return PushInteger(code.integer);
    case pickle::kFloat:
      value.kind = PyKind::kDouble;
      value.real = code.real;
      return PushNew(value);
    case pickle::kText4:
      return PushString(code.text, PyKind::kString);
    case pickle::kProto:
      if (opcode_at_ == 0 && code.integer == 2) return true;
      return Malformed(absl::StrCat("the pickle states protocol ", code.integer, " at byte ",
                                    opcode_at_, "; allowed is 2 at byte 0"));
    case pickle::kStop:
      stopped_ = true;
      return true;
    default:
      known = false;
      return true;
  }
}

bool Unpickler::ContainerStep(uint8_t opcode, bool& known) {
  known = true;
  size_t start = stack_.size();
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  switch (opcode) {
    case pickle::kMark:
      if (static_cast<int64_t>(stack_.size() + marks_.size()) >= limits_.stack) {
        return OverLimit("values and marks on its stack", limits_.stack);
      }
      marks_.push_back(stack_.size());
      return true;
    case pickle::kEmptyTuple:
      return PushSequence(PyKind::kTuple, start);
    case pickle::kEmptyList:
      return PushSequence(PyKind::kList, start);
    case pickle::kTuple1:
    case pickle::kTuple2:
    case pickle::kTuple3: {
      const size_t count = static_cast<size_t>(opcode - pickle::kTuple1) + 1;
      if (start - floor < count) return Malformed("a tuple takes more values than there are");
      return PushSequence(PyKind::kTuple, start - count);
    }
    case pickle::kTuple:
      return PopToMark(start) && PushSequence(PyKind::kTuple, start);
    case pickle::kAppend:
      if (start - floor < 2) return Malformed("a value is appended and there is no list");
      return Append(start - 1);
    case pickle::kAppends:
      return PopToMark(start) && Append(start);
    case pickle::kEmptyDict:
      values_.dicts_.emplace_back();
      return PushLast(PyKind::kDict, values_.dicts_.size());
    case pickle::kSetItem:
      if (start - floor < 3) return Malformed("an item is set and there is no dict");
      return SetItems(start - 2);
    case pickle::kSetItems:
      return PopToMark(start) && SetItems(start);
    default:
      known = false;
      return true;
  }
}

// Appends the stack's items from `start` on to the list below them.
bool Unpickler::Append(size_t start) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (start <= floor || stack_[start - 1].tag != Item::kValue ||
      values_.kind(PyId(stack_[start - 1].index)) != PyKind::kList) {
    return Malformed("values are appended to what is no list");
  }
  if (!Charge(stack_.size() - start)) return false;
  const PyId list(stack_[start - 1].index);
  auto& items = values_.sequences_[values_.IndexOf(list, PyKind::kList)].items;
  for (size_t i = start; i < stack_.size(); ++i) {
    PyId id;
    if (!AsValue(stack_[i], "an item of a list", id)) return false;
    items.push_back(id);
  }
  stack_.resize(start);
  return true;
}

// Sets the stack's items from `start` on, keys and values in turn, in the dict below them.
bool Unpickler::SetItems(size_t start) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (start <= floor || stack_[start - 1].tag != Item::kValue ||
      values_.kind(PyId(stack_[start - 1].index)) != PyKind::kDict) {
    return Malformed("items are set in what is no dict");
  }
  if ((stack_.size() - start) % 2 != 0) return Malformed("a dict has a key without a value");
  if (!Charge(stack_.size() - start)) return false;
  const PyId dict(stack_[start - 1].index);
  auto& entries = values_.dicts_[values_.IndexOf(dict, PyKind::kDict)].entries;
  for (size_t i = start; i < stack_.size(); i += 2) {
    PyId key;
    PyId value;
    if (!AsValue(stack_[i], "a dict's key", key)) return false;
    if (!AsValue(stack_[i + 1], "a dict's value", value)) return false;
    entries.emplace_back(key, value);
  }
  stack_.resize(start);
  return true;
}

bool Unpickler::CallStep(const Instruction& code, bool& known) {
  known = true;
  switch (code.opcode) {
    case pickle::kPut1:
    case pickle::kPut4:
      return Put(code.integer);
    case pickle::kGet1:
    case pickle::kGet4:
      return Get(code.integer);
    case pickle::kGlobal:
      return PushGlobal(code.text, code.name);
    case pickle::kNewObject:
      return NewObject();
    case pickle::kBuild:
      return Build();
    case pickle::kReduce:
      return Reduce();
    case pickle::kPersistentId:
      return PersistentId();
    default:
      known = false;
      return true;
  }
}

void Unpickler::Children(PyId id, std::vector<PyId>& out) const {
  out.clear();
  switch (values_.kind(id)) {
    case PyKind::kTuple:
    case PyKind::kList: {
      const absl::Span<const PyId> items = values_.items(id);
      out.assign(items.begin(), items.end());
      return;
    }
    case PyKind::kDict:
      for (const auto& [key, value] : values_.entries(id)) {
        out.push_back(key);
        out.push_back(value);
      }
      return;
    case PyKind::kObject:
      // The attributes are the state's values.
      if (values_.object(id).state.valid()) out.push_back(values_.object(id).state);
      return;
    case PyKind::kEnum:
      out.push_back(values_.enum_value(id));
      return;
    default:
      return;
  }
}

// No value may contain itself nor be nested deeper than the limit. A walk without recursion that
// visits every value once; each value's height is known when it is left.
bool Unpickler::CheckNesting(PyId root) {
  struct Frame {
    PyId id;
    std::vector<PyId> children;
    size_t next = 0;
    int height = 0;
  };
  constexpr int kUnseen = -1;
  constexpr int kOpen = -2;
  std::vector<int> heights(values_.values_.size(), kUnseen);
  std::vector<Frame> open;
  const auto enter = [&](PyId id) {
    heights[static_cast<size_t>(id.value())] = kOpen;
    open.push_back({.id = id, .children = {}});
    Children(id, open.back().children);
  };
  enter(root);
  while (!open.empty()) {
    Frame& frame = open.back();
    if (frame.next == frame.children.size()) {
      const int height = frame.height;
      heights[static_cast<size_t>(frame.id.value())] = height;
      open.pop_back();
      if (!open.empty()) open.back().height = std::max(open.back().height, height + 1);
      continue;
    }
    const PyId child = frame.children[frame.next++];
    const int height = heights[static_cast<size_t>(child.value())];
    if (height == kOpen) return Malformed("a value of the pickle contains itself");
    if (height >= 0) {
      frame.height = std::max(frame.height, height + 1);
    } else {
      enter(child);
    }
    if (static_cast<int>(open.size()) > limits_.nesting || open.back().height > limits_.nesting) {
      return OverLimit("values inside each other", limits_.nesting);
    }
  }
  return true;
}

PyId Unpickler::Run() {
  Instruction code;
  while (!stopped_) {
    if (code_.at_end()) {
      opcode_at_ = code_.size();
      Malformed("the pickle ends without its STOP instruction");
      return PyId();
    }
    const absl::Status read = code_.Next(code);
    opcode_at_ = code.at;
    if (opcode_at_ == 0 && code.opcode != pickle::kProto) {
      Malformed("the entry does not begin as a pickle of protocol 2");
      return PyId();
    }
    if (!read.ok()) {
      Malformed(std::string(read.message()));
      return PyId();
    }
    if (!Step(code)) return PyId();
  }
  PyId root;
  if (!marks_.empty() || stack_.size() != 1) {
    Malformed(absl::StrCat("the pickle stops with ", stack_.size(), " values and ", marks_.size(),
                           " marks on its stack; allowed is one value"));
    return PyId();
  }
  if (!PopValue("the pickle's result", root) || !CheckNesting(root)) return PyId();
  return root;
}

PyId Unpickle(absl::string_view bytes, absl::string_view file, absl::string_view entry,
              absl::string_view storage_folder, const PickleLimits& limits, PyValues& values,
              Diagnostics& diagnostics) {
  return Unpickler(bytes, file, entry, storage_folder, limits, values, diagnostics).Run();
}

}  // namespace npuc::pt
