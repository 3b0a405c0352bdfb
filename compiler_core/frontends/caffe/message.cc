#include "compiler_core/frontends/caffe/message.h"

#include <cmath>

namespace npuc::caffe {

const Field* Message::Find(absl::string_view name) const {
  for (auto it = fields.rbegin(); it != fields.rend(); ++it) {
    if (it->name == name) return &*it;
  }
  return nullptr;
}

std::vector<const Field*> Message::All(absl::string_view name) const {
  std::vector<const Field*> found;
  for (const Field& field : fields) {
    if (field.name == name) found.push_back(&field);
  }
  return found;
}

std::string Message::Text(absl::string_view name) const {
  const Field* field = Find(name);
  return field == nullptr ? "" : field->text;
}

std::vector<std::string> Message::Texts(absl::string_view name) const {
  std::vector<std::string> texts;
  for (const Field* field : All(name)) texts.push_back(field->text);
  return texts;
}

std::vector<const Message*> Message::Messages(absl::string_view name) const {
  std::vector<const Message*> found;
  for (const Field* field : All(name)) {
    if (field->message != nullptr) found.push_back(field->message.get());
  }
  return found;
}

absl::string_view Field::KindName() const {
  switch (kind) {
    case Kind::kNumber:
      return "a number";
    case Kind::kWord:
      return "a word";
    case Kind::kString:
      return "a string";
    case Kind::kMessage:
      return "a message";
    case Kind::kBytes:
    case Kind::kUnknown:
      break;
  }
  return "bytes";
}

std::optional<bool> Field::Bool() const {
  if (kind == Kind::kNumber && (number == 0 || number == 1)) return number == 1;
  if (kind != Kind::kWord) return std::nullopt;
  if (text == "true" || text == "True" || text == "t") return true;
  if (text == "false" || text == "False" || text == "f") return false;
  return std::nullopt;
}

std::optional<int64_t> Field::Int() const {
  constexpr double kMax = 9007199254740992.0;  // up to here each integer is a double
  if (kind != Kind::kNumber || number != std::floor(number) || std::fabs(number) > kMax) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

std::optional<double> Field::Float() const {
  if (kind != Kind::kNumber) return std::nullopt;
  return static_cast<double>(static_cast<float>(number));
}

}  // namespace npuc::caffe
