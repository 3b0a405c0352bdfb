#include "compiler_core/frontends/tflite/custom_options.h"

#include <flatbuffers/flexbuffers.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

using flexbuffers::Reference;

const uint8_t* BytesOf(absl::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

absl::StatusOr<Reference> Find(absl::string_view bytes, absl::string_view name) {
  if (!bytes.empty()) {
    const flexbuffers::Map map = flexbuffers::GetRoot(BytesOf(bytes), bytes.size()).AsMap();
    const Reference found = map[std::string(name)];
    if (!found.IsNull()) return found;
  }
  return absl::NotFoundError(absl::StrCat("attribute '", name, "' is missing"));
}

absl::Status WrongKind(absl::string_view name, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' must be ", wanted));
}

template <typename T, typename Read>
absl::StatusOr<std::vector<T>> List(absl::string_view bytes, absl::string_view name,
                                    absl::string_view wanted, bool (Reference::*is)() const,
                                    Read read) {
  ASSIGN_OR_RETURN(const Reference value, Find(bytes, name));
  std::vector<T> list;
  const auto take = [&](const auto& vector) -> absl::Status {
    if (vector.size() > CustomOptions::kMaxListEntries) return WrongKind(name, wanted);
    for (size_t i = 0; i < vector.size(); ++i) {
      if (!(vector[i].*is)()) return WrongKind(name, wanted);
      list.push_back(read(vector[i]));
    }
    return absl::OkStatus();
  };
  absl::Status status = WrongKind(name, wanted);
  if (value.IsTypedVector()) {
    status = take(value.AsTypedVector());
  } else if (value.IsFixedTypedVector()) {
    status = take(value.AsFixedTypedVector());
  } else if (value.IsUntypedVector()) {
    status = take(value.AsVector());
  }
  RETURN_IF_ERROR(status);
  return list;
}

}  // namespace

CustomOptions::CustomOptions(const fe::tflite::Operator& op) {
  if (op.custom_options() == nullptr) return;
  const absl::string_view bytes(reinterpret_cast<const char*>(op.custom_options()->data()),
                                op.custom_options()->size());
  if (bytes.size() < 3 || bytes.size() > kMaxBytes) return;
  if (!flexbuffers::VerifyBuffer(BytesOf(bytes), bytes.size())) return;
  if (flexbuffers::GetRoot(BytesOf(bytes), bytes.size()).IsMap()) bytes_ = bytes;
}

absl::StatusOr<bool> CustomOptions::Bool(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Reference value, Find(bytes_, name));
  if (!value.IsBool()) return WrongKind(name, "a bool");
  return value.AsBool();
}

absl::StatusOr<int64_t> CustomOptions::Int(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Reference value, Find(bytes_, name));
  if (!value.IsIntOrUint()) return WrongKind(name, "an integer");
  return value.AsInt64();
}

absl::StatusOr<double> CustomOptions::Float(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Reference value, Find(bytes_, name));
  if (!value.IsNumeric()) return WrongKind(name, "a number");
  return value.AsDouble();
}

absl::StatusOr<std::vector<int64_t>> CustomOptions::Ints(absl::string_view name) const {
  return List<int64_t>(bytes_, name, "a list of integers", &Reference::IsIntOrUint,
                       [](const Reference& item) { return item.AsInt64(); });
}

absl::StatusOr<std::vector<double>> CustomOptions::Floats(absl::string_view name) const {
  return List<double>(bytes_, name, "a list of numbers", &Reference::IsNumeric,
                      [](const Reference& item) { return item.AsDouble(); });
}

}  // namespace npuc::tflite
