#include "compiler_core/base/compile_options.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler_core/base/field_count.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Change = std::function<void(CompileOptions&)>;
using QuantChange = std::function<void(QuantOptions&)>;

// Another value of each type that a field has.
void Alter(bool& value) { value = !value; }
void Alter(int& value) { ++value; }
void Alter(int64_t& value) { ++value; }
void Alter(double& value) { value += 1; }
void Alter(std::string& value) { value += "x"; }
template <typename Enum>
requires std::is_enum_v<Enum>
void Alter(Enum& value) { value = value == Enum{1} ? Enum{2} : Enum{1}; }
void Alter(QuantStrategy& value) { value.kind = QuantStrategy::Kind::kKld; }
void Alter(std::map<std::string, std::pair<double, double>>& value) { value["w"] = {-1, 1}; }
void Alter(std::map<std::string, int64_t>& value) { value["n"] = 2; }
template <typename T>
void Alter(std::vector<T>& value) {
  value.emplace_back();
}
template <typename T>
void Alter(std::optional<T>& value) {
  value.emplace();
}

// One change per field.
std::vector<Change> OneChangePerField() {
  return {
#define NPUC_OPTION(field, ...) [](CompileOptions& options) { Alter(options.field); },
#define NPUC_OPTION_WITHOUT_KEY(field) [](CompileOptions& options) { Alter(options.field); },
#define NPUC_KEY(...)
#include "compiler_core/base/compile_options.inc"
  };
}

std::vector<QuantChange> OneChangePerQuantOption() {
  return {
#define NPUC_QUANT_OPTION(field, ...) [](QuantOptions& options) { Alter(options.field); },
#define NPUC_QUANT_OPTION_WITHOUT_KEY(field) [](QuantOptions& options) { Alter(options.field); },
#define NPUC_QUANT_KEY(...)
#include "compiler_core/base/quant_options.inc"
      [](QuantOptions& options) { options.activation_strategy.parameter = 3; },
      [](QuantOptions& options) {
        options.trim_infinity = {-1, 1, false};
      },
      [](QuantOptions& options) {
        options.trim_infinity = {-1, 1, true};
      },
  };
}

CompileOptions Base() {
  CompileOptions options;
  options.core = "GRUS";
  options.npu_unit = "NPU32";
  options.model_name = "a.pb";
  options.output_type = "c_code";
  options.output_file = "a.h";
  options.inputs = {{"x", {1, 784}}};
  options.outputs = {"a"};
  return options;
}

TEST(CanonicalOptionsTest, EveryFieldChangesTheBytes) {
  const std::vector<Change> changes = OneChangePerField();
  ASSERT_EQ(changes.size(), FieldCount<CompileOptions>());
  std::set<std::string> seen = {CanonicalOptions(Base())};
  for (size_t i = 0; i < changes.size(); ++i) {
    CompileOptions options = Base();
    changes[i](options);
    EXPECT_TRUE(seen.insert(CanonicalOptions(options)).second) << "change " << i;
  }
}

TEST(CanonicalOptionsTest, EveryQuantOptionChangesTheBytes) {
  CompileOptions options = Base();
  options.quant.emplace();
  std::set<std::string> seen = {CanonicalOptions(Base()), CanonicalOptions(options)};
  for (const QuantChange& change : OneChangePerQuantOption()) {
    options.quant.emplace();
    change(*options.quant);
    EXPECT_TRUE(seen.insert(CanonicalOptions(options)).second) << "change " << seen.size() - 2;
  }
}

TEST(CanonicalOptionsTest, EqualOptionsGiveEqualBytes) {
  EXPECT_EQ(CanonicalOptions(Base()), CanonicalOptions(Base()));
}

TEST(CanonicalOptionsTest, NeighbouringFieldsDoNotRunTogether) {
  const std::vector<Change> changes = {
      [](CompileOptions& o) { o.outputs = {"ab"}; },
      [](CompileOptions& o) {
        o.outputs = {"a", "b"};
      },
      [](CompileOptions& o) { o.outputs = {"a"}, o.fp16_outputs = {"b"}; },
      [](CompileOptions& o) {
        o.outputs = {}, o.fp16_outputs = {"a", "b"};
      },
      [](CompileOptions& o) {
        o.outputs = {"", "ab"};
      },
      [](CompileOptions& o) {
        o.inputs = {{"x", {1}}, {"784", {}}};
      },
      [](CompileOptions& o) {
        o.inputs = {{"x", {}}, {"784", {1}}};
      },
      [](CompileOptions& o) { o.exclude_compress_ops = {"w"}; },
      [](CompileOptions& o) { o.exclude_conv2d_compress_ops = {"w"}; },
      [](CompileOptions& o) {
        o.weight_min_max = {{"w", {-1, 1}}};
      },
      [](CompileOptions& o) {
        o.weight_min_max = {{"w", {-1, 2}}};
      },
      [](CompileOptions& o) {
        o.weight_min_max = {{"w", {-2, 1}}};
      },
      [](CompileOptions& o) {
        o.const_inputs = {{"s", {1}, false, true}};
      },
      [](CompileOptions& o) {
        o.const_inputs = {{"s", {1}, true, true}};
      },
      [](CompileOptions& o) {
        o.const_inputs = {{"s", {1}, false, false}};
      },
      [](CompileOptions& o) {
        o.dims = {{"s", 1}};
      },
      [](CompileOptions& o) {
        o.dims = {{"s", 2}};
      },
      [](CompileOptions& o) { o.weight_cache_size_bytes = 0; },
      [](CompileOptions& o) { o.weight_cache_size_bytes = 1; },
      [](CompileOptions& o) { o.framework = Framework::kOnnx; },
  };
  std::set<std::string> seen;
  for (const Change& change : changes) {
    CompileOptions options = Base();
    change(options);
    EXPECT_TRUE(seen.insert(CanonicalOptions(options)).second);
  }
}

struct ThreeFields {
  bool flag = false;
  std::vector<std::string> names;
  std::optional<double> number;
};
static_assert(FieldCount<ThreeFields>() == 3);
struct NoFields {};
static_assert(FieldCount<NoFields>() == 0);

}  // namespace
}  // namespace npuc
