#include "compiler_core/quant/data/numpy_pickle.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;
using Kind = PickleNode::Kind;

// By Python 3.11 and NumPy 1.24, of one dict:
// {'data': {'data_0': {'extrema_min': np.array(-1.5, np.float32), 'extrema_max': 2.25,
//   'running_min': np.float32(-1), 'running_max': np.float64(2), 'running_mean': 0.5,
//   'running_std': None, 'running_histc': np.array([1, 2, 3], np.float32)}},
//  'fc': {'fc_0': {'extrema_min': -3, 'extrema_max': True, 'running_histc': [1.0, 0.5]}}}
constexpr absl::string_view kProtocol3 =
    "80037d71002858040000006461746171017d71025806000000646174615f3071037d710428580b0000006578"
    "7472656d615f6d696e7105636e756d70792e636f72652e6d756c746961727261790a5f7265636f6e73747275"
    "63740a7106636e756d70790a6e6461727261790a71074b00857108430162710987710a52710b284b0129636e"
    "756d70790a64747970650a710c58020000006634710d898887710e52710f284b0358010000003c71104e4e4e"
    "4affffffff4affffffff4b00747111628943040000c0bf711274711362580b00000065787472656d615f6d61"
    "787114474002000000000000580b00000072756e6e696e675f6d696e7115636e756d70792e636f72652e6d75"
    "6c746961727261790a7363616c61720a7116680f4304000080bf7117867118527119580b00000072756e6e69"
    "6e675f6d6178711a6816680c58020000006638711b898887711c52711d284b0368104e4e4e4affffffff4aff"
    "ffffff4b0074711e6243080000000000000040711f867120527121580c00000072756e6e696e675f6d65616e"
    "7122473fe0000000000000580b00000072756e6e696e675f73746471234e580d00000072756e6e696e675f68"
    "697374637124680668074b008571256809877126527127284b014b03857128680f89430c0000803f00000040"
    "00004040712974712a62757358020000006663712b7d712c580400000066635f30712d7d712e2868054afdff"
    "ffff68148868245d712f28473ff0000000000000473fe0000000000000657573752e";
constexpr absl::string_view kProtocol4 =
    "800495ca010000000000007d94288c0464617461947d948c06646174615f30947d94288c0b65787472656d61"
    "5f6d696e948c156e756d70792e636f72652e6d756c74696172726179948c0c5f7265636f6e73747275637494"
    "93948c056e756d7079948c076e6461727261799493944b0085944301629487945294284b012968098c056474"
    "7970659493948c02663494898887945294284b038c013c944e4e4e4affffffff4affffffff4b007494628943"
    "040000c0bf947494628c0b65787472656d615f6d6178944740020000000000008c0b72756e6e696e675f6d69"
    "6e9468068c067363616c617294939468144304000080bf94869452948c0b72756e6e696e675f6d617894681c"
    "68118c02663894898887945294284b0368154e4e4e4affffffff4affffffff4b007494624308000000000000"
    "004094869452948c0c72756e6e696e675f6d65616e94473fe00000000000008c0b72756e6e696e675f737464"
    "944e8c0d72756e6e696e675f6869737463946808680b4b008594680d87945294284b014b038594681489430c"
    "0000803f00000040000040409474946275738c026663947d948c0466635f30947d942868054afdffffff6819"
    "88682a5d9428473ff0000000000000473fe0000000000000657573752e";
constexpr absl::string_view kProtocol5 =
    "800595c6010000000000007d94288c0464617461947d948c06646174615f30947d94288c0b65787472656d61"
    "5f6d696e948c126e756d70792e636f72652e6e756d65726963948c0b5f66726f6d6275666665729493942896"
    "04000000000000000000c0bf948c056e756d7079948c0564747970659493948c02663494898887945294284b"
    "038c013c944e4e4e4affffffff4affffffff4b00749462298c014394749452948c0b65787472656d615f6d61"
    "78944740020000000000008c0b72756e6e696e675f6d696e948c156e756d70792e636f72652e6d756c746961"
    "72726179948c067363616c6172949394680f4304000080bf94869452948c0b72756e6e696e675f6d61789468"
    "19680c8c02663894898887945294284b0368104e4e4e4affffffff4affffffff4b0074946243080000000000"
    "00004094869452948c0c72756e6e696e675f6d65616e94473fe00000000000008c0b72756e6e696e675f7374"
    "64944e8c0d72756e6e696e675f686973746394680828960c000000000000000000803f000000400000404094"
    "680f4b03859468127494529475738c026663947d948c0466635f30947d942868054afdffffff68158868275d"
    "9428473ff0000000000000473fe0000000000000657573752e";
constexpr absl::string_view kSaved =
    "934e554d5059010076007b276465736372273a20277c4f272c2027666f727472616e5f6f72646572273a2046"
    "616c73652c20277368617065273a2028292c207d202020202020202020202020202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020200a8003636e"
    "756d70792e636f72652e6d756c746961727261790a5f7265636f6e7374727563740a7100636e756d70790a6e"
    "6461727261790a71014b008571024301627103877104527105284b0129636e756d70790a64747970650a7106"
    "58020000004f3871078988877108527109284b0358010000007c710a4e4e4e4affffffff4affffffff4b3f74"
    "710b62895d710c7d710d28580400000064617461710e7d710f5806000000646174615f3071107d711128580b"
    "00000065787472656d615f6d696e7112680068014b008571136803877114527115284b012968065802000000"
    "663471168988877117527118284b0358010000003c71194e4e4e4affffffff4affffffff4b0074711a628943"
    "040000c0bf711b74711c62580b00000065787472656d615f6d6178711d474002000000000000580b00000072"
    "756e6e696e675f6d696e711e636e756d70792e636f72652e6d756c746961727261790a7363616c61720a711f"
    "68184304000080bf7120867121527122580b00000072756e6e696e675f6d61787123681f6806580200000066"
    "3871248988877125527126284b0368194e4e4e4affffffff4affffffff4b0074712762430800000000000000"
    "40712886712952712a580c00000072756e6e696e675f6d65616e712b473fe0000000000000580b0000007275"
    "6e6e696e675f737464712c4e580d00000072756e6e696e675f6869737463712d680068014b0085712e680387"
    "712f527130284b014b03857131681889430c0000803f00000040000040407132747133627573580200000066"
    "6371347d7135580400000066635f3071367d71372868124afdffffff681d88682d5d713828473ff000000000"
    "0000473fe00000000000006575737561747139622e";

class NumpyPickleTest : public testing::TestWithParam<absl::string_view> {};

TEST_P(NumpyPickleTest, ReadsWhatPythonWrites) {
  const std::string file = absl::HexStringToBytes(GetParam());
  ASSERT_TRUE(IsNumpyPickle(file));
  const absl::StatusOr<PickleTree> tree = ReadNumpyPickle(file);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_EQ(tree->kind(tree->root), Kind::kDict);
  const PickleTree::Id data = tree->Find(tree->Find(tree->root, "data"), "data_0");
  const auto scalar = [&](absl::string_view key) {
    const PickleTree::Id id = tree->Find(data, key);
    if (tree->kind(id) == Kind::kNumber) return tree->number(id);
    const NpyArray& array = tree->array(id);
    std::vector<float> numbers(1);
    NpyElements(array.dtype, array.bytes.data(), numbers);
    return static_cast<double>(numbers[0]);
  };
  EXPECT_EQ(scalar("extrema_min"), -1.5);
  EXPECT_EQ(scalar("extrema_max"), 2.25);
  EXPECT_EQ(scalar("running_min"), -1);
  EXPECT_EQ(scalar("running_max"), 2);
  EXPECT_EQ(tree->kind(tree->Find(data, "running_std")), Kind::kNone);
  EXPECT_EQ(tree->Find(data, "running_mad"), -1);
  const NpyArray& counts = tree->array(tree->Find(data, "running_histc"));
  EXPECT_EQ(counts.shape, std::vector<int64_t>{3});
  std::vector<float> numbers(3);
  NpyElements(counts.dtype, counts.bytes.data(), numbers);
  EXPECT_EQ(numbers, (std::vector<float>{1, 2, 3}));
  const PickleTree::Id fc = tree->Find(tree->Find(tree->root, "fc"), "fc_0");
  EXPECT_EQ(tree->number(tree->Find(fc, "extrema_min")), -3);
  EXPECT_EQ(tree->number(tree->Find(fc, "extrema_max")), 1);
  EXPECT_EQ(tree->items(tree->Find(fc, "running_histc")).size(), 2u);
}

TEST_P(NumpyPickleTest, RefusesEachShorterFile) {
  const std::string file = absl::HexStringToBytes(GetParam());
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ReadNumpyPickle(file.substr(0, size)).ok()) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, NumpyPickleTest,
                         testing::Values(kProtocol3, kProtocol4, kProtocol5, kSaved));

std::string Problem(const std::string& file) {
  return std::string(ReadNumpyPickle(file).status().message());
}

TEST(NumpyPickle, CallsNothingElse) {
  // pickle.dumps(os.system), protocols 4 and 3.
  EXPECT_THAT(Problem(absl::HexStringToBytes(
                  "80049514000000000000008c05706f736978948c0673797374656d9493942e")),
              HasSubstr("it calls 'posix system'"));
  EXPECT_THAT(Problem("\x80\x03"
                      "cposix\nsystem\nX\x02" +
                      std::string(3, '\0') + "ls\x85R."),
              HasSubstr("it calls 'posix system'"));
  EXPECT_THAT(Problem("\x80\x02"
                      "cnumpy\nndarray\n)R."),
              HasSubstr("no array is made by"));
  EXPECT_THAT(Problem("\x80\x02"
                      "cnumpy\nndarray\n."),
              HasSubstr("ends with a function"));
}

TEST(NumpyPickle, SaysWhatIsWrong) {
  EXPECT_THAT(Problem("\x80\x02}(X\x01" + std::string(3, '\0') + "au."),
              HasSubstr("a key has no value"));
  EXPECT_THAT(Problem("\x80\x02h\x05."), HasSubstr("memo has no such place"));
  EXPECT_THAT(Problem("\x80\x02(0."), HasSubstr("instruction 48"));
  EXPECT_THAT(Problem("\x80\x02" + std::string(2000, '(') + "."), HasSubstr("1024 levels"));
  EXPECT_THAT(Problem("\x80\x02r\xff\xff\xff\x7f."), HasSubstr("memo"));
  const absl::StatusOr<std::string> numbers = WriteNpy({DType::kInt8, {2}, "ab"});
  EXPECT_THAT(Problem(*numbers), HasSubstr("holds numbers"));
  // An array of f4 whose shape needs more bytes than there are.
  std::string array = absl::HexStringToBytes(kProtocol3);
  const size_t at = array.find("K\x03\x85");
  ASSERT_NE(at, std::string::npos);
  array[at + 1] = 4;
  EXPECT_THAT(Problem(array), HasSubstr("bytes do not fit its shape"));
  array[at + 1] = static_cast<char>(0xff);
  EXPECT_THAT(Problem(array), testing::AnyOf(HasSubstr("fit its shape"), HasSubstr("file's size")));
}

TEST(NumpyPickle, ReadsWhatItWrites) {
  NumpyPickleWriter writer;
  writer.OpenDict();
  writer.Text("node");
  writer.OpenDict();
  writer.Text("low");
  writer.Number(-0.125);
  writer.Text("counts");
  writer.Floats({1, 2.5, 4});
  writer.CloseDict();
  writer.CloseDict();
  const std::string file = writer.Take();
  EXPECT_TRUE(absl::StartsWith(file, "\x93NUMPY"));
  const absl::StatusOr<PickleTree> tree = ReadNumpyPickle(file);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const PickleTree::Id node = tree->Find(tree->root, "node");
  EXPECT_EQ(tree->number(tree->Find(node, "low")), -0.125);
  EXPECT_EQ(tree->array(tree->Find(node, "counts")).shape, std::vector<int64_t>{3});
}

}  // namespace
}  // namespace npuc
