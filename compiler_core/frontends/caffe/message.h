#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_MESSAGE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npuc::caffe {

// Limits of both files of a model; more is a diagnostic.
inline constexpr size_t kMaxModelBytes = size_t{1} << 28;
inline constexpr size_t kMaxTextBytes = size_t{1} << 24;
inline constexpr int kMaxFields = 1 << 19;  // of one file, all messages together
inline constexpr int kMaxDepth = 32;        // messages inside of one another

struct Field;

// A message of a Caffe file, read from binary or from text alike: fields in the file's order, by
// name, since forks of Caffe agree on names and not on numbers. Names are views of the file or of
// static text; the file outlives the message.
class Message {
 public:
  std::vector<Field> fields;

  // The last field of the name, which is what counts where a field has one value; or null.
  const Field* Find(absl::string_view name) const;
  // All fields of the name.
  std::vector<const Field*> All(absl::string_view name) const;
  // The text of the last field of the name; empty where there is none.
  std::string Text(absl::string_view name) const;
  std::vector<std::string> Texts(absl::string_view name) const;
  // Messages of the name.
  std::vector<const Message*> Messages(absl::string_view name) const;
};

struct Field {
  enum class Kind : uint8_t {
    kNumber,   // number
    kWord,     // text: true, false, the name of an enumerator
    kString,   // text
    kMessage,  // message
    kBytes,    // bytes: a blob, decoded where a layer needs it
    kUnknown,  // a field of the binary form that no table names; number is its own
  };

  absl::string_view name;
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string text = {};
  std::unique_ptr<Message> message = {};
  absl::string_view bytes = {};

  // "a number", for a message.
  absl::string_view KindName() const;
  // nullopt where the field holds another kind.
  std::optional<bool> Bool() const;  // true, false, or a number
  std::optional<int64_t> Int() const;
  std::optional<double> Float() const;  // rounded to float32, which is what Caffe computes with
};

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_MESSAGE_H_
