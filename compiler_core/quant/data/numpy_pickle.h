#ifndef NPUC_COMPILER_CORE_QUANT_DATA_NUMPY_PICKLE_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_NUMPY_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/quant/data/npy.h"

namespace npuc {

// Python's dicts in the files of numpy.save, as an array of one object, and of pickle.dump. Values
// are dicts, lists, tuples, texts, bytes, numbers, None, and NumPy's arrays and scalars. Nothing is
// executed: of the functions that a pickle may call, those that make NumPy's arrays are known; any
// other is an error.
struct PickleNode {
  enum class Kind : uint8_t {
    kNone,
    kNumber,    // of booleans 0 or 1
    kText,      // bytes, too
    kList,      // tuples, too
    kDict,      // a key, its value, the next key ...
    kArray,     // a scalar of NumPy has no dimensions
    kFunction,  // inside a pickle alone: a function or class
    kType,      // the same: a dtype
  };
  Kind kind = Kind::kNone;
  int32_t index = -1;  // into the table of the kind
  double number = 0;
};

// One file's values by id. A value may stand in several places, also in itself: a reader goes down
// a fixed number of levels.
struct PickleTree {
  using Id = int32_t;
  std::vector<PickleNode> nodes;
  std::vector<std::string> texts;
  std::vector<std::vector<Id>> lists;  // kList, kDict
  std::vector<NpyArray> arrays;
  Id root = 0;

  PickleNode::Kind kind(Id id) const { return nodes[static_cast<size_t>(id)].kind; }
  double number(Id id) const { return nodes[static_cast<size_t>(id)].number; }
  // The entry of an id, which must be of the kind that the table is for.
  const std::string& text(Id id) const { return texts[IndexOf(id)]; }
  const std::vector<Id>& items(Id id) const { return lists[IndexOf(id)]; }
  const NpyArray& array(Id id) const { return arrays[IndexOf(id)]; }
  // The value of a dict's key, -1 where it has none. Of equal keys the last.
  Id Find(Id dict, absl::string_view key) const;

 private:
  size_t IndexOf(Id id) const { return static_cast<size_t>(nodes[static_cast<size_t>(id)].index); }
};

// True for a file that begins as such a file does.
bool IsNumpyPickle(absl::string_view file);

// Protocols 2 to 5. INVALID_ARGUMENT saying what is wrong, with the byte. At most 2^22 values;
// arrays have their elements in the file.
absl::StatusOr<PickleTree> ReadNumpyPickle(absl::string_view file);

// Writes a dict as numpy.save does: numpy.load(path, allow_pickle=True).item() gives it back.
// A dict is opened and closed; within it each value follows its key, a text.
class NumpyPickleWriter {
 public:
  NumpyPickleWriter();
  void OpenDict();
  void CloseDict();
  void Text(absl::string_view text);
  void Number(double number);
  void Floats(const std::vector<float>& values);  // an array of one dimension
  std::string Take();                             // the file; behind the last CloseDict

 private:
  void BeginArray();
  void Type(absl::string_view code, char byte_order, bool has_objects);
  std::string out_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_NUMPY_PICKLE_H_
