// The fuzz corpus' seeds, made here.
#include <string>

#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

// One of each thing that a pickle can hold.
std::string Everything() {
  PickleBuilder p;
  p.BeginObject("Net").String("n").Raw("N").String("t").Raw("\x88").String("f").Float(0.5);
  p.String("i").Int(int64_t{1} << 40).String("q").Global("torch._utils", "_rebuild_qtensor");
  p.Raw("(").Storage("QInt8", "0", 4).Int(0).Ints({4}).Ints({1}).Raw("(");
  p.Global("torch", "per_tensor_affine").Float(0.5).Int(0).Raw("t\x89");
  p.Global("collections", "OrderedDict").Raw(")RtR").String("l");
  p.Global("torch.jit._pickle", "build_intlist").Raw("](").Int(1).Int(-2).Raw("e\x85Rq\x01");
  p.String("l2").Raw("h\x01").String("d").Global("torch.jit._pickle", "restore_type_tag");
  p.Raw("(}(").String("k").Int(3).Raw("u").String("Dict[str, int]").Raw("tR");
  p.String("e").Global("__torch__", "Color").Int(1).Raw("R").String("z");
  p.Global("builtins", "complex").Float(1).Float(2).Raw("\x86R").String("v");
  p.Global("torch", "device").String("cpu").Raw("\x85R").EndObject();
  return p.Bytes();
}

TEST(ArchiveCorpusTest, SeedsAreCommitted) {
  ZipBuilder deflated;
  deflated.Deflated("net/data.pkl", SampleData()).Deflated("net/data/0", Floats(6));
  deflated.Deflated("net/code/__torch__.py", "class Net(Module):\n  pass\n");
  deflated.Stored("net/constants.pkl", NoConstants()).Stored("net/version", "3\n");
  ExpectSeeds("torch_archive_fuzz", {{"seed_archive.pt", SampleArchive().Bytes()},
                                     {"seed_archive64.pt", SampleArchive().Zip64(true).Bytes()},
                                     {"seed_deflated.pt", deflated.Bytes()},
                                     {"seed_everything.pkl", Everything()},
                                     {"seed_tensor.pkl", SampleData()}});
  EXPECT_TRUE(RunUnpickle(Everything()).root.valid()) << RunUnpickle(Everything()).Text();
}

}  // namespace
}  // namespace npuc::pt
