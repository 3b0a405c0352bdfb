#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_UNPICKLER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_UNPICKLER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/pickle_code.h"
#include "compiler_core/frontends/torchscript/pickle.h"

// The restricted unpickler behind Unpickle (pickle.h): a machine of a stack, a memo and a few dozen
// instructions (unpickler.cc; base/pickle_code.h reads them), and the functions that a pickle may
// call (unpickler_calls.cc).

namespace npuc::pt {

// The usual advice of its diagnostics.
inline constexpr const char* kSaveAgain =
    "save the model again by torch.jit.save(torch.jit.script(model), path) or torch.jit.trace";

// What a GLOBAL names: a function of torch that the machine knows, or a class of the archive.
enum class PickleGlobal : int32_t {
  kClass,
  kRebuildTensor,
  kRebuildQTensor,
  kRebuildParameter,
  kOrderedDict,
  kComplex,
  kDevice,
  kRestoreTypeTag,
  kBuildIntList,
  kBuildTensorList,
  kBuildDoubleList,
  kBuildBoolList,
};

// What the stack and the memo hold.
struct PickleItem {
  enum Tag : int8_t { kEmpty, kValue, kArguments, kGlobalTag, kStorage, kStorageType, kQuantizer };
  Tag tag = kEmpty;
  PickleGlobal global = PickleGlobal::kClass;
  // A PyId, an argument tuple, a class, a storage, a scalar type, a quantizer: by number.
  int32_t index = -1;
};

// "a storage" ...: for messages.
absl::string_view NameOf(PickleItem::Tag tag);

// One run over one pickle. Every function that can fail returns false after a diagnostic; nothing
// goes on after the first, since a pickle has no way to find back in.
class Unpickler {
 public:
  Unpickler(absl::string_view bytes, absl::string_view file, absl::string_view entry,
            absl::string_view storage_folder, const PickleLimits& limits, PyValues& values,
            Diagnostics& diagnostics)
      : code_(bytes),
        file_(file),
        entry_(entry),
        storage_folder_(storage_folder),
        limits_(limits),
        values_(values),
        first_storage_(values.storages_.size()),
        diagnostics_(diagnostics) {}

  PyId Run();

 private:
  using Item = PickleItem;
  using Global = PickleGlobal;
  using Instruction = pickle::Instruction;

  bool Fail(DiagnosticKind kind, const std::string& message, std::string fix = kSaveAgain);
  bool Malformed(const std::string& message);
  bool OverLimit(absl::string_view what, int64_t limit);

  // Stack and memo.
  bool Push(Item item);
  bool PushValue(PyId id) { return Push({.tag = Item::kValue, .index = id.value()}); }
  bool Pop(Item& item);
  bool PopValue(absl::string_view what, PyId& id);
  bool AsValue(const Item& item, absl::string_view what, PyId& id);
  bool PopToMark(size_t& start);  // the items above the topmost mark begin at `start`
  bool Put(int64_t index);
  bool Get(int64_t index);

  // New values.
  bool Charge(size_t items);        // counts what values hold against the limit on values
  bool ChargeString(size_t bytes);  // the same for strings
  bool PushNew(PyValues::Value value);
  bool PushLast(PyKind kind, size_t table_size);  // a value that is its table's last
  bool PushInteger(int64_t value);
  bool PushString(absl::string_view text, PyKind kind);
  bool PushSequence(PyKind kind, size_t start);

  // Opcodes, in groups. Each sets `known` to whether the opcode is of its group.
  bool Step(const Instruction& code);
  bool ScalarStep(const Instruction& code, bool& known);
  bool ContainerStep(uint8_t opcode, bool& known);
  bool CallStep(const Instruction& code, bool& known);
  bool Append(size_t start);
  bool SetItems(size_t start);
  bool PushGlobal(absl::string_view module, absl::string_view name);
  bool PushClass(absl::string_view name);
  bool PushTorchConstant(absl::string_view name, bool& known);
  bool RefuseGlobal(absl::string_view name);
  bool NewObject();
  bool Build();
  bool Reduce();
  bool ReduceCall(Global global, const std::vector<Item>& arguments);
  bool BuildList(absl::Span<const Item> arguments, const std::string& type_tag);
  bool RestoreTypeTag(absl::Span<const Item> arguments);
  bool ReadQuantizer(const Item& parameters, PyQuantizer& quantizer);
  bool RebuildTensor(bool quantized, absl::Span<const Item> arguments);
  bool RebuildParameter(absl::Span<const Item> arguments);
  bool Dimensions(const Item& item, absl::string_view what, std::vector<int64_t>& out);
  bool PersistentId();
  bool FindOrAddStorage(PyStorage storage, int32_t& index);

  bool CheckNesting(PyId root);
  void Children(PyId id, std::vector<PyId>& out) const;

  pickle::CodeReader code_;
  std::string file_;
  std::string entry_;
  std::string storage_folder_;
  const PickleLimits& limits_;
  PyValues& values_;
  const size_t first_storage_;
  Diagnostics& diagnostics_;

  size_t opcode_at_ = 0;  // of the opcode that runs
  bool stopped_ = false;
  int64_t steps_ = 0;
  int64_t string_bytes_ = 0;
  int64_t items_held_ = 0;
  std::vector<Item> stack_;
  std::vector<size_t> marks_;
  std::vector<Item> memo_;
  std::vector<std::string> classes_;
  absl::flat_hash_map<std::string, int32_t> storage_by_entry_;
  // The arguments of calls: tuples whose items are not all values. By index.
  std::vector<std::vector<Item>> argument_tuples_;
};

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_UNPICKLER_H_
