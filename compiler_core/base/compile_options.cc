#include "compiler_core/base/compile_options.h"

#include <bit>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "compiler_core/base/field_count.h"

namespace npuc {
namespace {

// Appends values so that no two different sequences of equal static types give equal bytes:
// numbers are eight bytes, little endian; strings and lists carry their length first.
class CanonicalWriter {
 public:
  void Put(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      out_.push_back(static_cast<char>((value >> shift) & 0xff));
    }
  }
  void Put(int value) { Put(int64_t{value}); }
  void Put(int64_t value) { Put(static_cast<uint64_t>(value)); }
  void Put(bool value) { Put(static_cast<uint64_t>(value ? 1 : 0)); }
  void Put(double value) { Put(std::bit_cast<uint64_t>(value)); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void Put(Enum value) { Put(static_cast<uint64_t>(value)); }
  void Put(const std::string& text) {
    Put(static_cast<uint64_t>(text.size()));
    out_ += text;
  }
  void Put(const InputDecl& input) {
    const auto& [name, shape] = input;
    Put(name);
    Put(shape);
  }
  void Put(const ConstInput& input) {
    const auto& [name, values, is_list, is_whole] = input;
    PutAll(name, values, is_list, is_whole);
  }
  void Put(const std::map<std::string, int64_t>& sizes) {
    Put(static_cast<uint64_t>(sizes.size()));
    for (const auto& [name, size] : sizes) PutAll(name, size);
  }
  template <typename T>
  void Put(const std::vector<T>& list) {
    Put(static_cast<uint64_t>(list.size()));
    for (const T& item : list) Put(item);
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value.has_value()) Put(*value);
  }
  void Put(const std::map<std::string, std::pair<double, double>>& ranges) {
    Put(static_cast<uint64_t>(ranges.size()));
    for (const auto& [name, range] : ranges) {
      Put(name);
      Put(range.first);
      Put(range.second);
    }
  }
  void Put(const QuantStrategy& strategy) {
    const auto& [kind, parameter] = strategy;
    PutAll(kind, parameter);
  }
  void Put(const TrimInfinity& trim) {
    const auto& [min, max, second] = trim;
    PutAll(min, max, second);
  }
  void Put(const InputBytes& bytes) {
    const auto& [scale, zero_point] = bytes;
    PutAll(scale, zero_point);
  }
  void Put(const LayerIds& ids) {
    const auto& [first, last] = ids;
    PutAll(first, last);
  }
  void Put(const LayerTiles& tiles) {
    const auto& [ids, rows, columns] = tiles;
    PutAll(ids, rows, columns);
  }
  void Put(const TrimRule& rule) {
    const auto& [type, ids, trim] = rule;
    PutAll(type, ids, trim);
  }
  void Put(const PreprocessStep& step) {
    const auto& [kind, is_linear, shape, axes] = step;
    PutAll(kind, is_linear, shape, axes);
  }
  void Put(const QuantOptions& options) {
#define NPUC_QUANT_OPTION(field, ...) Put(options.field);
#define NPUC_QUANT_OPTION_WITHOUT_KEY(field) Put(options.field);
#define NPUC_QUANT_KEY(...)
#include "compiler_core/base/quant_options.inc"
  }
  template <typename... Fields>
  void PutAll(const Fields&... fields) {
    (Put(fields), ...);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Changes when the order or the meaning of the fields does.
constexpr char kFormat[] = "npuc-options-6";

constexpr size_t kListedOptions = 0
#define NPUC_OPTION(field, ...) +1
#define NPUC_OPTION_WITHOUT_KEY(field) +1
#define NPUC_KEY(...)
#include "compiler_core/base/compile_options.inc"
    ;
static_assert(kListedOptions == FieldCount<CompileOptions>(),
              "each field of CompileOptions needs a row in compile_options.inc");

constexpr size_t kListedQuantOptions = 0
#define NPUC_QUANT_OPTION(field, ...) +1
#define NPUC_QUANT_OPTION_WITHOUT_KEY(field) +1
#define NPUC_QUANT_KEY(...)
#include "compiler_core/base/quant_options.inc"
    ;
static_assert(kListedQuantOptions == FieldCount<QuantOptions>(),
              "each field of QuantOptions needs a row in quant_options.inc");

}  // namespace

std::string CanonicalOptions(const CompileOptions& options) {
  CanonicalWriter writer;
  writer.Put(std::string(kFormat));
#define NPUC_OPTION(field, ...) writer.Put(options.field);
#define NPUC_OPTION_WITHOUT_KEY(field) writer.Put(options.field);
#define NPUC_KEY(...)
#include "compiler_core/base/compile_options.inc"
  return writer.Take();
}

}  // namespace npuc
