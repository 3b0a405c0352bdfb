// The unpickler on its own: what torch writes is read; anything else is refused by its name.
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(const PickleBuilder& pickle, const PickleLimits& limits = {}) {
  const UnpickleResult result = RunUnpickle(pickle.Bytes(), limits);
  EXPECT_FALSE(result.root.valid());
  EXPECT_EQ(result.diagnostics.error_count(), 1u);
  return result.Text();
}

TEST(PickleTest, Scalars) {
  PickleBuilder p;
  p.Raw("(").Raw("N\x88\x89").Int(200).Int(60000).Int(-5).Int(int64_t{1} << 40);
  p.Raw(absl::string_view("\x8a\x00", 2)).Raw("\x8a\x01\xff").Float(-2.5).String("a\nb").Raw("t");
  const UnpickleResult result = RunUnpickle(p.Bytes());
  ASSERT_TRUE(result.root.valid()) << result.Text();
  const PyValues& v = result.values;
  ASSERT_EQ(v.kind(result.root), PyKind::kTuple);
  const absl::Span<const PyId> items = v.items(result.root);
  ASSERT_EQ(items.size(), 11u);
  EXPECT_EQ(v.kind(items[0]), PyKind::kNone);
  EXPECT_TRUE(v.boolean(items[1]));
  EXPECT_FALSE(v.boolean(items[2]));
  EXPECT_EQ(v.integer(items[3]), 200);
  EXPECT_EQ(v.integer(items[4]), 60000);
  EXPECT_EQ(v.integer(items[5]), -5);
  EXPECT_EQ(v.integer(items[6]), int64_t{1} << 40);
  EXPECT_EQ(v.integer(items[7]), 0);
  EXPECT_EQ(v.integer(items[8]), -1);
  EXPECT_EQ(v.real(items[9]), -2.5);
  EXPECT_EQ(v.string(items[10]), "a\nb");
}

TEST(PickleTest, TypedContainersKeepIdentity) {
  // [int list] under memo 7, referred to twice, and a tagged dict.
  PickleBuilder p;
  p.Raw("(").Global("torch.jit._pickle", "build_intlist").Raw("](").Int(1).Int(2).Raw("e\x85R");
  p.Raw("q\x07h\x07").Global("torch.jit._pickle", "restore_type_tag");
  p.Raw("(}(").String("k").Int(3).Raw("u").String("Dict[str, int]").Raw("tRt");
  const UnpickleResult result = RunUnpickle(p.Bytes());
  ASSERT_TRUE(result.root.valid()) << result.Text();
  const PyValues& v = result.values;
  const absl::Span<const PyId> items = v.items(result.root);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(v.type_tag(items[0]), "List[int]");
  ASSERT_EQ(v.items(items[0]).size(), 2u);
  EXPECT_EQ(v.integer(v.items(items[0])[1]), 2);
  EXPECT_EQ(v.type_tag(items[2]), "Dict[str, int]");
  ASSERT_EQ(v.entries(items[2]).size(), 1u);
  EXPECT_EQ(v.string(v.entries(items[2])[0].first), "k");
}

TEST(PickleTest, SingleItemInstructions) {
  PickleBuilder p;
  p.Raw("]").Int(1).Raw("a").Int(2).Raw("a}").String("k").Int(3).Raw("s\x86");
  const UnpickleResult result = RunUnpickle(p.Bytes());
  ASSERT_TRUE(result.root.valid()) << result.Text();
  const absl::Span<const PyId> items = result.values.items(result.root);
  EXPECT_EQ(result.values.items(items[0]).size(), 2u);
  EXPECT_EQ(result.values.entries(items[1]).size(), 1u);
}

TEST(PickleTest, ObjectsDevicesEnumsComplexNumbers) {
  PickleBuilder p;
  p.BeginObject("Net").String("training").Raw("\x88").String("where").Global("torch", "device");
  p.String("cpu").Raw("\x85R").String("color").Global("__torch__.m", "Color").Int(2).Raw("R");
  p.String("z").Global("builtins", "complex").Float(1).Float(-1).Raw("\x86R").EndObject();
  const UnpickleResult result = RunUnpickle(p.Bytes());
  ASSERT_TRUE(result.root.valid()) << result.Text();
  const PyValues& v = result.values;
  const PyObject& object = v.object(result.root);
  EXPECT_EQ(object.class_name, "__torch__.Net");
  ASSERT_EQ(object.attributes.size(), 4u);
  EXPECT_EQ(object.attributes[0].first, "training");
  EXPECT_FALSE(object.Find("absent").valid());
  EXPECT_EQ(v.string(object.Find("where")), "cpu");
  EXPECT_EQ(v.kind(object.Find("where")), PyKind::kDevice);
  EXPECT_EQ(v.enum_class(object.Find("color")), "__torch__.m.Color");
  EXPECT_EQ(v.integer(v.enum_value(object.Find("color"))), 2);
  EXPECT_EQ(v.complex(object.Find("z")), std::make_pair(1.0, -1.0));
}

TEST(PickleTest, ObjectsWithTheirOwnStateHaveNoAttributes) {
  PickleBuilder p;
  p.Global("__torch__", "Packed").Raw(")\x81(").Int(1).Int(2).Raw("tb");
  const UnpickleResult result = RunUnpickle(p.Bytes());
  ASSERT_TRUE(result.root.valid()) << result.Text();
  const PyObject& object = result.values.object(result.root);
  EXPECT_TRUE(object.attributes.empty());
  EXPECT_EQ(result.values.kind(object.state), PyKind::kTuple);
}

TEST(PickleTest, TensorsShareStorages) {
  PickleBuilder p;
  p.Raw("(").Tensor("Half", "0", 12, 0, {3, 4}, {4, 1}).Tensor("Half", "0", 12, 1, {3}, {4});
  p.Raw("t");
  const UnpickleResult result = RunUnpickle(p.Bytes());
  ASSERT_TRUE(result.root.valid()) << result.Text();
  ASSERT_EQ(result.values.storages().size(), 1u);
  EXPECT_EQ(result.values.storages()[0].entry, "data/0");
  EXPECT_EQ(result.values.storages()[0].element_count, 12);
  const PyTensor& tensor = result.values.tensor(result.values.items(result.root)[1]);
  EXPECT_EQ(tensor.type, ScalarType::kFloat16);
  EXPECT_EQ(tensor.storage_offset, 1);
  EXPECT_THAT(tensor.sizes, ElementsAre(3));
  EXPECT_THAT(tensor.strides, ElementsAre(4));
}

TEST(PickleTest, QuantizedTensorsAndParametersAreRead) {
  PickleBuilder p;
  p.Raw("(").Global("torch._utils", "_rebuild_qtensor").Raw("(").Storage("QInt8", "0", 4).Int(0);
  p.Ints({4})
      .Ints({1})
      .Raw("(")
      .Global("torch", "per_tensor_affine")
      .Float(0.5)
      .Int(3)
      .Raw("t\x89");
  p.Global("collections", "OrderedDict").Raw(")RtR");
  p.Global("torch._utils", "_rebuild_parameter").Raw("(").Tensor("Float", "1", 1, 0, {}, {});
  p.Raw("\x88").Global("collections", "OrderedDict").Raw(")RtRt");
  const UnpickleResult result = RunUnpickle(p.Bytes());
  ASSERT_TRUE(result.root.valid()) << result.Text();
  const absl::Span<const PyId> items = result.values.items(result.root);
  const PyQuantizer& quantizer = result.values.tensor(items[0]).quantizer;
  EXPECT_EQ(quantizer.scheme, "per_tensor_affine");
  EXPECT_EQ(quantizer.scale, 0.5);
  EXPECT_EQ(quantizer.zero_point, 3);
  EXPECT_TRUE(IsQuantized(result.values.tensor(items[0]).type));
  EXPECT_EQ(result.values.kind(items[1]), PyKind::kTensor);
}

TEST(PickleTest, ForeignGlobalsAreRefusedByName) {
  for (const char* name : {"os\nsystem", "posix\nsystem", "builtins\neval", "builtins\ngetattr",
                           "subprocess\nPopen", "torch\nload", "torch.nn.modules.linear\nLinear",
                           "numpy.core.multiarray\n_reconstruct", "torch\nFloat8_e5m2Storage"}) {
    const std::string text = Refusal(PickleBuilder().Raw(absl::StrCat("c", name, "\n")));
    std::string dotted = name;
    dotted[dotted.find('\n')] = '.';
    EXPECT_THAT(text, HasSubstr("NPUC1135"));
    EXPECT_THAT(text, HasSubstr(dotted));
    EXPECT_THAT(text, HasSubstr("byte 2"));
  }
  const std::string text =
      Refusal(PickleBuilder().Global("torch._utils", "_rebuild_sparse_tensor"));
  EXPECT_THAT(text, HasSubstr("make it dense"));
}

TEST(PickleTest, ForeignInstructionsAreRefusedByName) {
  // INST, OBJ, BINPERSID's text form, EXT1, FRAME, STACK_GLOBAL, POP, INT, UNICODE, LONG4 ...
  for (const char op : std::string("ioP\x82\x95\x93"
                                   "0IV\x8bLSTU12lgpd")) {
    EXPECT_THAT(Refusal(PickleBuilder().Raw("N").Raw(std::string(1, op)).Raw("NNNNNNNN")),
                HasSubstr("NPUC1134"))
        << op;
  }
}

TEST(PickleTest, StackUnderflowsAreRefused) {
  for (const char* code :
       {"t",    "a",    "Na",   "e",     "(e",     "N(e",    "s",     "}Ns", "u",   "(u",
        "(NNu", "}(Nu", "\x85", "N\x86", "NN\x87", "\x81",   "N\x81", "b",   "NNb", "R",
        "NNR",  "Q",    "NQ",   "q\x01", "h\x01",  "(q\x01", "N(",    "",    "NN",  "](\x85t"}) {
    EXPECT_THAT(Refusal(PickleBuilder().Raw(code)), HasSubstr("NPUC1136")) << code;
  }
}

TEST(PickleTest, ValuesOfTheWrongKindAreRefused) {
  PickleBuilder storage_as_value;
  storage_as_value.Raw("](").Storage("Float", "0", 1).Raw("e");
  EXPECT_THAT(Refusal(storage_as_value), HasSubstr("NPUC1136"));
  PickleBuilder storage_as_root;
  storage_as_root.Storage("Float", "0", 1);
  EXPECT_THAT(Refusal(storage_as_root), HasSubstr("NPUC1136"));
  PickleBuilder call_of_number;
  call_of_number.Int(1).Raw(")R");
  EXPECT_THAT(Refusal(call_of_number), HasSubstr("NPUC1136"));
  PickleBuilder class_with_arguments;
  class_with_arguments.Global("__torch__", "A").Int(1).Raw("\x85\x81");
  EXPECT_THAT(Refusal(class_with_arguments), HasSubstr("NPUC1136"));
  PickleBuilder twice_built;
  twice_built.Global("__torch__", "A").Raw(")\x81}b}b");
  EXPECT_THAT(Refusal(twice_built), HasSubstr("second state"));
  PickleBuilder strange_name;
  strange_name.Global("__torch__", "A;B");
  EXPECT_THAT(Refusal(strange_name), HasSubstr("no name of a class"));
}

TEST(PickleTest, TensorsStayWithinTheirStorage) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const struct {
    int64_t elements, offset;
    std::vector<int64_t> sizes, strides;
  } cases[] = {
      {6, 1, {2, 3}, {3, 1}},
      {6, 0, {7}, {1}},
      {6, 0, {2}, {huge}},
      {6, 0, {huge}, {huge}},
      {6, huge, {1}, {1}},
      {6, -1, {1}, {1}},
      {6, 0, {-1}, {1}},
      {6, 0, {2}, {-1}},
      {6, 0, {2, 2}, {1}},
      {-1, 0, {}, {}},
      {huge, 0, {huge, 4}, {1, huge}},
      {6, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
  };
  for (const auto& c : cases) {
    PickleBuilder p;
    p.Tensor("Float", "0", c.elements, c.offset, c.sizes, c.strides);
    EXPECT_THAT(Refusal(p), HasSubstr("NPUC1138"));
  }
  PickleBuilder twice;
  twice.Raw("(").Tensor("Float", "0", 6, 0, {6}, {1}).Tensor("Int", "0", 6, 0, {6}, {1}).Raw("t");
  EXPECT_THAT(Refusal(twice), HasSubstr("named twice"));
}

TEST(PickleTest, ValuesThatContainThemselvesAreRefused) {
  EXPECT_THAT(Refusal(PickleBuilder().Raw("]q\x01(h\x01"
                                          "e")),
              HasSubstr("contains itself"));
  EXPECT_THAT(Refusal(PickleBuilder().Raw("}q\x01(").String("k").Raw("h\x01u")),
              HasSubstr("contains itself"));
  // Through an object's state, which is changed after the object was made of it.
  EXPECT_THAT(Refusal(PickleBuilder()
                          .Global("__torch__", "A")
                          .Raw(")\x81}q\x01"
                               "bq\x02"
                               "0")),
              HasSubstr("NPUC1134"));
  PickleBuilder object;
  object.Raw("(").Global("__torch__", "A").Raw(")\x81}q\x01").Raw("bq\x02h\x01(").String("me");
  object.Raw("h\x02ut");
  EXPECT_THAT(Refusal(object), HasSubstr("contains itself"));
}

TEST(PickleTest, DeepNestingIsRefusedSharingIsNot) {
  PickleBuilder deep;
  for (int i = 0; i < 100000; ++i) deep.Raw("]");
  for (int i = 1; i < 100000; ++i) deep.Raw("a");
  EXPECT_THAT(Refusal(deep), HasSubstr("NPUC1132"));
  // Each tuple holds the one before twice: 2^100 paths, 101 values.
  PickleBuilder doubled;
  doubled.Raw(")q\x01");
  for (int i = 0; i < 100; ++i) doubled.Raw("h\x01\x86q\x01");
  const UnpickleResult result = RunUnpickle(doubled.Bytes());
  EXPECT_TRUE(result.root.valid()) << result.Text();
}

TEST(PickleTest, EveryLimitIsKept) {
  PickleBuilder many;
  for (int i = 0; i < 300; ++i) many.Raw("N");
  EXPECT_THAT(Refusal(many, {.steps = 100}), HasSubstr("100 instructions"));
  EXPECT_THAT(Refusal(many, {.values = 100}), HasSubstr("100 values"));
  EXPECT_THAT(Refusal(many, {.stack = 100}), HasSubstr("100 values and marks"));
  PickleBuilder marks;
  for (int i = 0; i < 300; ++i) marks.Raw("(");
  EXPECT_THAT(Refusal(marks, {.stack = 100}), HasSubstr("100 values and marks"));
  PickleBuilder memo;
  memo.Raw("N").Raw(absl::string_view("r\xff\xff\xff\xff", 5));
  EXPECT_THAT(Refusal(memo), HasSubstr("number 4294967295"));
  PickleBuilder strings;
  strings.String(std::string(300, 'x'));
  EXPECT_THAT(Refusal(strings, {.string_bytes = 299}), HasSubstr("bytes in strings"));
  PickleBuilder tensors;
  tensors.Tensor("Float", "0", 1, 0, {}, {}).Tensor("Float", "0", 1, 0, {}, {});
  EXPECT_THAT(Refusal(tensors, {.tensors = 1}), HasSubstr("1 tensors"));
}

TEST(PickleTest, MemoTricksCostNoMoreThanTheirBytes) {
  // One long state dict given to many objects; one long class name made many times.
  PickleBuilder p;
  p.Raw("(}(");
  for (int i = 0; i < 5000; ++i) p.String(absl::StrCat("k", i)).Raw("N");
  p.Raw("uq\x01");
  p.Global("__torch__", std::string(400, 'A')).Raw("q\x02");
  for (int i = 0; i < 100000; ++i)
    p.Raw(
        "h\x02)\x81h\x01"
        "b");
  p.Raw("t");
  EXPECT_THAT(Refusal(p), HasSubstr("NPUC1132"));
}

TEST(PickleTest, TruncatedStringsAndLongLinesAreRefused) {
  EXPECT_THAT(Refusal(PickleBuilder().Raw(absl::string_view("X\xff\xff\xff\xff", 5))),
              HasSubstr("4294967295 bytes are needed"));
  EXPECT_THAT(Refusal(PickleBuilder().Raw("c" + std::string(100000, 'a'))), HasSubstr("NPUC1136"));
  EXPECT_THAT(Refusal(PickleBuilder().Raw("\x8a\x09" + std::string(9, 'a'))),
              HasSubstr("at most 8"));
  Diagnostics diagnostics;
  PyValues values;
  EXPECT_FALSE(Unpickle("\x80\x04N.", "f", "e", "d", {}, values, diagnostics).valid());
  EXPECT_FALSE(Unpickle("N.", "f", "e", "d", {}, values, diagnostics).valid());
  EXPECT_FALSE(Unpickle("", "f", "e", "d", {}, values, diagnostics).valid());
  EXPECT_EQ(diagnostics.error_count(), 3u);
}

}  // namespace
}  // namespace npuc::pt
