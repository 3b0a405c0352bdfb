#include "server/objects/xml.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::objects {
namespace {

constexpr char kList[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
    "  <Name>farm</Name><Prefix/><IsTruncated>false</IsTruncated>\n"
    "  <Contents><Key>a/b</Key><ETag>&quot;9&#x41;&#66;&quot;</ETag></Contents>\n"
    "  <Contents a='>'><Key>a/&lt;c&amp;&gt;</Key></Contents><!-- the last -->\n"
    "  <Marker><![CDATA[<]]>&#x20ac;</Marker>\n"
    "</ListBucketResult>\n";

TEST(XmlTest, LeavesInTheirOrder) {
  const auto leaves = ReadXmlLeaves(kList);
  ASSERT_TRUE(leaves.ok()) << leaves.status();
  std::string all;
  for (const XmlLeaf& leaf : *leaves) absl::StrAppend(&all, leaf.path, "=", leaf.text, "\n");
  EXPECT_EQ(all,
            "ListBucketResult/Name=farm\n"
            "ListBucketResult/Prefix=\n"
            "ListBucketResult/IsTruncated=false\n"
            "ListBucketResult/Contents/Key=a/b\n"
            "ListBucketResult/Contents/ETag=\"9AB\"\n"
            "ListBucketResult/Contents/Key=a/<c&>\n"
            "ListBucketResult/Marker=<\u20ac\n");
}

TEST(XmlTest, OthersAreNone) {
  std::string deep, deep_end, many = "<a>";
  for (size_t i = 0; i <= kMaxXmlDepth; ++i) {
    absl::StrAppend(&deep, "<a>");
    absl::StrAppend(&deep_end, "</a>");
  }
  for (size_t i = 0; i <= kMaxXmlLeaves; ++i) absl::StrAppend(&many, "<b/>");
  const std::string documents[] = {"",
                                   "text",
                                   "<a>",
                                   "</a>",
                                   "<a></b>",
                                   "<a/><b/>",
                                   "<a><b></a></b>",
                                   "<a b=\"></a>",
                                   "<a>&c;</a>",
                                   "<a>&#0;</a>",
                                   "<a>&</a>",
                                   "<a>&#</a>",
                                   "<a>&#x</a>",
                                   "<",
                                   "<a",
                                   "<!DOCTYPE a><a/>",
                                   "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
                                   "<a>\xff</a>",
                                   "<?xml",
                                   deep + deep_end,
                                   deep.substr(3) + "<a/>" + deep_end.substr(4),
                                   many + "</a>",
                                   "<a>b</a>c",
                                   "<a>" + std::string(kMaxXmlBytes, ' ') + "</a>"};
  for (const std::string& document : documents) {
    EXPECT_EQ(ReadXmlLeaves(document).status().code(), absl::StatusCode::kInvalidArgument)
        << document.substr(0, 100);
  }
}

// No damage of a list makes more of it than it has; sanitizers look on.
TEST(XmlTest, DamagedOnesAreReadOrRefused) {
  std::mt19937 random(1);
  const std::string list = kList;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = list;
    for (int j = 0; j < 3; ++j) {
      const size_t at = random() % damaged.size();
      if (random() % 2 == 0) {
        damaged[at] = static_cast<char>(random() % 256);
      } else {
        damaged.erase(at, random() % 8);
      }
    }
    const auto leaves = ReadXmlLeaves(damaged);
    if (!leaves.ok()) {
      ++refused;
    } else {
      EXPECT_LE(leaves->size(), 40u);
    }
  }
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace npuc::objects
