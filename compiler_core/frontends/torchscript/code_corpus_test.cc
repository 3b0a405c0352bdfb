// The seeds of torch_code_fuzz, made here.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "compiler_core/frontends/torchscript/parser.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

// A module whose forward has these parameters and this body, a statement a line.
std::string Forward(const std::string& parameters, const std::string& body) {
  return absl::StrCat("class Net(Module):\n  w : Tensor\n  n : int\n  def forward(self, ",
                      parameters, ") -> Tensor:\n", body);
}

std::map<std::string, std::string> Seeds() {
  return {
      {"seed_conv.py",
       Forward("x: Tensor",
               "    k = torch.ones([8, 4, 3, 3])\n"
               "    y = torch.conv2d(x, k, None, [1, 1], [1, 1], [1, 1], 1)\n"
               "    y = torch.batch_norm(y, None, None, torch.zeros([8]), torch.ones([8]), False, "
               "0.1, 1e-05, True)\n"
               "    y = torch.max_pool2d(torch.relu_(y), [2, 2], [2, 2], [0, 0], [1, 1], False)\n"
               "    y = torch.upsample_nearest2d(y, None, [2., 2.])\n"
               "    y = torch.adaptive_avg_pool2d(y, [1, None])\n"
               "    return torch.flatten(torch.constant_pad_nd(y, [1, 1], 0.5), 1)\n")},
      {"seed_recurrent.py",
       Forward("x: Tensor, h: Tensor",
               "    wi = torch.zeros([12, 6])\n"
               "    wh = torch.zeros([12, 4])\n"
               "    s = torch.zeros([1, 1, 4])\n"
               "    y, a = torch.gru(x, s, [wi, wh], False, 1, 0., False, False, True)\n"
               "    wl = torch.zeros([16, 4])\n"
               "    z, b, c = torch.lstm(y, [s, s], [wl, wl], False, 1, 0., False, False, True)\n"
               "    return (z, [b, c, a])\n")},
      {"seed_python.py",
       Forward(
           "x: Tensor",
           "    _0 = annotate(List[int], [])\n"
           "    for i in range(self.n):\n"
           "      _1 = torch.append(_0, torch.mul(i, torch.size(x, 1)))\n"
           "    d = {\"a\": _0[-1], \"b\": 2.5}\n"
           "    while torch.lt(torch.len(_0), 5):\n"
           "      _2 = torch.append(_0, int(ops.prim.NumToTensor(d[\"a\"])))\n"
           "    if torch.__contains__(d, \"c\"):\n"
           "      ops.prim.RaiseException(torch.format(\"no {}\", d), \"builtins.ValueError\")\n"
           "    else:\n"
           "      pass\n"
           "    y = torch.view(x, [-1, _0[1] if True else 1])\n"
           "    return (self).scaled(y, by=__torch__.half(4, ), )\n") +
           "  def scaled(self, x: Tensor, by: float=1.) -> Tensor:\n"
           "    return torch.mul(x, by)\n"
           "def half(a: int) -> float:\n  return torch.div(a, 2)\n"},
      {"seed_resize.py",
       Forward("x: Tensor",
               "    k = torch.ones([4, 3, 2, 3])\n"
               "    y = torch.conv_transpose2d(x, k, None, [2, 1], [1, 0], [1, 0], 1, [1, 2])\n"
               "    z = torch.conv_transpose2d(x, k, torch.ones([3]), [2, 3], [0, 0], [0, 0], 1)\n"
               "    a = torch.upsample_bilinear2d(y, [5, 3], True, None)\n"
               "    b = torch.upsample_bicubic2d(y, None, False, [0.5, 2.])\n"
               "    c, d = torch.tensor_split(x, [1], 1)\n"
               "    e = torch.repeat_interleave(torch.channel_shuffle(x, 2), 2, 1)\n"
               "    f = torch.dstack([c, torch.to(c, dtype=6, layout=0, copy=True)])\n"
               "    return (a, b, z, d, e, f, torch.logsumexp(x, [1, 2], False))\n")},
      {"seed_attention.py",
       Forward("x: Tensor",
               "    x = torch.slice(torch.select(x, 0, 0), 2, 0, 6)\n"
               "    w = torch.ones([18, 6])\n"
               "    b = torch.zeros([18])\n"
               "    v = torch.ones([6, 6])\n"
               "    u = torch.ones([6])\n"
               "    y, s = torch._native_multi_head_attention(x, x, x, 6, 2, w, b, v, u)\n"
               "    z = torch._transformer_encoder_layer_fwd(x, 6, 3, w, b, v, u, "
               "False,\n      True, 1e-05, u, u, u, u, w, b, torch.ones([6, 18]), u)\n"
               "    return (y, s, z)\n")},
      {"seed_types.py",
       Forward(
           "x: Tensor",
           "    n = torch.sum(torch.slice([1, 2, 3], None, None, -2))\n"
           "    if isinstance((x, n), Tuple[Tensor, Union[int, float]]):\n"
           "      n = torch.find(torch.slice(\"abcd\", 1, None, 1), \"d\", 0, 3)\n"
           "    elif isinstance([n], List[int]) and isinstance(None, Optional[__torch__.Net]):\n"
           "      n = 1\n"
           "    return torch.mul(x, n)\n")},
      {"seed_in_place.py",
       Forward("x: Tensor, y: Tensor",
               "    z = torch.clone(x)\n"
               "    _0 = torch.copy_(torch.slice(torch.select(z, 0, 0), 1, 1, 3), 2.)\n"
               "    a, b = torch.split(z, 2, 1)\n"
               "    _1 = torch.add_(a, torch.softmax(b, -1), alpha=2)\n"
               "    c = torch.stack([a, b], 0)\n"
               "    _2 = torch.mul_(torch.transpose(torch.permute(z, [0, 2, 3, 1]), 1, 2), y)\n"
               "    return (z, torch.cat(torch.unbind(c, 1), 1), torch.linear(y, self.w))\n")},
  };
}

TEST(CodeCorpusTest, SeedsAreCommitted) {
  ExpectSeeds("torch_code_fuzz", Seeds());
  for (const auto& [name, text] : Seeds()) {
    CodeError error;
    EXPECT_NE(ParseCode(text, {}, error), nullptr)
        << name << ":" << error.line << ":" << error.column << " " << error.message;
  }
}

}  // namespace
}  // namespace npuc::pt
