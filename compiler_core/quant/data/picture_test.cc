#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "compiler_core/quant/data/picture_file.h"
#include "compiler_core/quant/data/picture_values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

// Files that Pillow 9.4 wrote (filters.png: by hand, a row with each filter), in hexadecimal, and
// the pixels that both Pillow and OpenCV 4.6 read from them.
struct Case {
  const char* name;
  int64_t height, width, channels;
  const char* file;
  const char* pixels;
};
constexpr Case kCases[] = {
    {"rgb.png", 4, 5, 3,
     "89504e470d0a1a0a0000000d4948445200000005000000040802000000c95162170000001b49444154789c6364"
     "b0f9cfcdfd158e5844debce1fefe158e08f101df2822cd482907ca0000000049454e44ae426082",
     "003cff0b47f41652e9215dde2c68d31428eb1f33e02a3ed53549ca4054bf2814d7331fcc3e2ac14935b65440ab"
     "3c00c3470bb85216ad5d21a2682c97"},
    {"grey.png", 4, 5, 1,
     "89504e470d0a1a0a0000000d49484452000000050000000408000000006358aa9c0000001649444154789c6364"
     "e0e6e6e66614e1e6e6e6664122010b0600f70704571e0000000049454e44ae426082",
     "000b16212c141f2a354028333e49543c47525d68"},
    {"rgba.png", 4, 5, 3,
     "89504e470d0a1a0a0000000d49484452000000050000000408060000004633f5400000002049444154789c6364"
     "b0f9cfc0cdfd951b19b388bc7923c2fdfd2b3732265e10004f6223b961f692950000000049454e44ae426082",
     "003cff0b47f41652e9215dde2c68d31428eb1f33e02a3ed53549ca4054bf2814d7331fcc3e2ac14935b65440ab"
     "3c00c3470bb85216ad5d21a2682c97"},
    {"palette.png", 4, 5, 3,
     "89504e470d0a1a0a0000000d4948445200000005000000040403000000b41de87300000030504c5445295bd620"
     "48df423cbd1038f05628a92424dc3f0dc0000000000000000000000000000000000000000000000000000000c4"
     "d70c3d0000001849444154789c6330166060301552600855726048737100000e61024c46df5ab5000000004945"
     "4e44ae426082",
     "1038f01038f02048df295bd6295bd61038f02424dc2048df423cbd423cbd2424dc2424dc423cbd423cbd5628a9"
     "3f0dc03f0dc05628a95628a95628a9"},
    {"bits.png", 4, 5, 1,
     "89504e470d0a1a0a0000000d49484452000000050000000401000000006e48c8ed0000001049444154789c63e0"
     "6032607260f8010002fc0175831215040000000049454e44ae426082",
     "00000000ff0000ffffff00ffffffffffffffffff"},
    {"deep.png", 4, 5, 1,
     "89504e470d0a1a0a0000000d494844520000000500000004100000000033c876df0000001249444154789c6364"
     "60e68602161111fc4c00285a01e99897568c0000000049454e44ae426082",
     "000b16212c141f2a354028333e49543c47525d68"},
    {"filters.png", 5, 4, 3,
     "89504e470d0a1a0a0000000d4948445200000004000000050802000000edcfda8c0000004c49444154789c0141"
     "00beff01a8e5b80309f369e04a85fe10027d501d23d202f2aa4ac7207e0364eaedff1ac5d7cfaacb2842049463"
     "7703133419fe986662dd00c423399232b39168ce358d21e1711d8cc105bd230000000049454e44ae426082",
     "a8e5b8abeeab14cef599cc052535d5cec0ad06783f60ec83760457a17c472a49ed10c2fa0a67ce0d8f02264785"
     "762462c423399232b39168ce358d21"},
    {"rgb.jpg", 4, 5, 3,
     "ffd8ffe000104a46494600010100000100010000ffdb00430006040506050406060506070706080a100a0a0909"
     "0a140e0f0c1017141818171416161a1d251f1a1b231c1616202c20232627292a29191f2d302d283025282928ff"
     "db0043010707070a080a130a0a13281a161a282828282828282828282828282828282828282828282828282828"
     "2828282828282828282828282828282828282828282828ffc00011080004000503012200021101031101ffc400"
     "1500010100000000000000000000000000000007ffc4001a100100010500000000000000000000000000010304"
     "051422ffc4001501010100000000000000000000000000000306ffc4001e110001030403000000000000000000"
     "00000200010403111321324191ffda000c03010002110311003f0098e22f2b6ac7402fe519662df69863d2b716"
     "f197ffd9",
     "1037ec1841e9244ede2d5bd53662cb1928e32032de2c40d5354dcb3d53c22d11d5361acf4228c74b35bc533bb3"
     "3603ca3d0cc74a1abc5326b45c2eaa"},
    {"grey.jpg", 4, 5, 1,
     "ffd8ffe000104a46494600010100000100010000ffdb00430006040506050406060506070706080a100a0a0909"
     "0a140e0f0c1017141818171416161a1d251f1a1b231c1616202c20232627292a29191f2d302d283025282928ff"
     "c2000b080004000501011100ffc40014000100000000000000000000000000000006ffda000801010000000139"
     "ffc400161001010100000000000000000000000000030212ffda0008010100010502008c7fffc4001510010100"
     "000000000000000000000000000031ffda0008010100063f028fffc40014100100000000000000000000000000"
     "000000ffda0008010100013f2153ffda00080101000000107fffc4001510010100000000000000000000000000"
     "000011ffda0008010100013f108cff00ffd9",
     "020b18242b141c2a353d2b34414d543b43515c64"},
};

TEST(PictureTest, FilesHaveThePixelsThatOtherProgramsRead) {
  for (const Case& each : kCases) {
    const std::string file = absl::HexStringToBytes(each.file);
    EXPECT_TRUE(LooksLikePicture(file)) << each.name;
    const auto pixels = ReadPicture(file);
    ASSERT_TRUE(pixels.ok()) << each.name << ": " << pixels.status();
    EXPECT_EQ(pixels->height, each.height) << each.name;
    EXPECT_EQ(pixels->width, each.width) << each.name;
    EXPECT_EQ(pixels->channels, each.channels) << each.name;
    EXPECT_EQ(absl::BytesToHexString(pixels->bytes), each.pixels) << each.name;
  }
}

TEST(PictureTest, ACutFileIsRefused) {
  for (const Case& each : kCases) {
    const std::string file = absl::HexStringToBytes(each.file);
    for (size_t i = 0; i < file.size() - 2; ++i) {  // libjpeg does without the two bytes of the end
      EXPECT_FALSE(ReadPicture(file.substr(0, i)).ok()) << each.name << " " << i;
    }
  }
}

std::string ProblemWith(const std::string& file) {
  return std::string(ReadPicture(file).status().message());
}

TEST(PictureTest, SaysWhatIsWrongWithAFile) {
  std::string png = absl::HexStringToBytes(kCases[0].file);
  png[20] ^= 1;
  EXPECT_THAT(ProblemWith(png), HasSubstr("the checksum of chunk 'IHDR' is wrong"));
  EXPECT_THAT(ProblemWith("\xff\xd8\xff nothing"), HasSubstr("not a usable JPEG file: "));
  // Header with another size or interlacing, its checksum right.
  constexpr char kStart[] = "89504e470d0a1a0a0000000d49484452";
  EXPECT_THAT(ProblemWith(absl::HexStringToBytes(std::string(kStart) +
                                                 "00004001000000010800000000ec3682ba")),
              HasSubstr("it is 16385 x 1 pixels; a side has 1 to 16384"));
  EXPECT_THAT(ProblemWith(absl::HexStringToBytes(std::string(kStart) +
                                                 "00000005000000040800000001145f9a0a")),
              HasSubstr("it is interlaced"));
}

absl::StatusOr<std::vector<float>> ValuesOf(const Pixels& pixels, const PictureForm& form,
                                            const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(ElementCount(shape)), -1);
  const absl::Status status = PictureToValues(pixels, form, shape, absl::MakeSpan(values));
  if (!status.ok()) return status;
  return values;
}

const PictureForm kLast{.layout = PictureForm::Layout::kLast};

const Pixels& Colours() {
  static const Pixels pixels{1, 2, 3, std::string("\x0a\x14\x1e\x28\x32\x3c", 6)};
  return pixels;
}

TEST(PictureTest, ChannelsLieWhereTheInputHasThem) {
  EXPECT_THAT(*ValuesOf(Colours(), kLast, {1, 1, 2, 3}), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(*ValuesOf(Colours(), {}, {3, 1, 2}), ElementsAre(10, 40, 20, 50, 30, 60));
  EXPECT_THAT(*ValuesOf(Colours(), {.bgr = true, .layout = kLast.layout}, {1, 1, 2, 3}),
              ElementsAre(30, 20, 10, 60, 50, 40));
  EXPECT_THAT(*ValuesOf(Colours(), {}, {1, 6}), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(*ValuesOf(Colours(), {}, {1, 2}), ElementsAre(18, 48));  // 0.299, 0.587, 0.114
  const Pixels grey{1, 2, 1, "\x0a\x14"};
  EXPECT_THAT(*ValuesOf(grey, kLast, {1, 1, 2, 3}), ElementsAre(10, 10, 10, 20, 20, 20));
}

TEST(PictureTest, MeanAndScaleAreOfTheInputsChannels) {
  const PictureForm form{
      .mean = {10, 20, 30}, .scale = {1, 2, 4}, .layout = PictureForm::Layout::kLast};
  EXPECT_THAT(*ValuesOf(Colours(), form, {1, 1, 2, 3}), ElementsAre(0, 0, 0, 30, 60, 120));
  const PictureForm bgr{.mean = {30, 20, 10}, .scale = {0.5}, .bgr = true};
  EXPECT_THAT(*ValuesOf(Colours(), bgr, {3, 1, 2}), ElementsAre(0, 15, 0, 15, 0, 15));
}

TEST(PictureTest, ResizesBetweenTheMiddlesOfPixels) {
  // cv2.resize(x, (4, 3), interpolation=cv2.INTER_LINEAR) of float32 [[0, 40], [100, 200]].
  const Pixels pixels{2, 2, 1, std::string("\x00\x28\x64\xc8", 4)};
  const auto values = ValuesOf(pixels, {.resize = true, .layout = kLast.layout}, {1, 3, 4, 1});
  ASSERT_TRUE(values.ok()) << values.status();
  const std::vector<float> wanted = {0, 10, 30, 40, 50, 67.5, 102.5, 120, 100, 125, 175, 200};
  EXPECT_THAT(*values, ElementsAreArray(wanted));
}

TEST(PictureTest, AFileSaysWhatPicturesBecome) {
  const auto form = PictureFormFromYaml(
      "mean: [1, 2.5, -3]\nstd: 4\nchannels: BGR\nlayout: NCHW\nresize: true\n");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_THAT(form->mean, ElementsAre(1, 2.5, -3));
  EXPECT_THAT(form->scale, ElementsAre(0.25));
  EXPECT_TRUE(form->bgr && form->resize && form->layout == PictureForm::Layout::kFirst);
  const auto problem = [](absl::string_view text) {
    return std::string(PictureFormFromYaml(text).status().message());
  };
  EXPECT_EQ(problem("a: 1"), "line 1: 'a' is none of mean, scale, std, channels, layout, resize");
  EXPECT_EQ(
      problem("mean: 1\nstd: 0"),
      "line 2: std takes a number or a list of 3, each from -1e6 to 1e6 and not 0, found '0'");
  EXPECT_THAT(problem("mean: [1, 2]"), HasSubstr("mean takes a number or a list of 3"));
  EXPECT_THAT(problem("mean: nan"), HasSubstr("mean takes a number"));
  EXPECT_THAT(problem("layout: CHW"), HasSubstr("layout takes NHWC or NCHW, found 'CHW'"));
  EXPECT_THAT(problem("scale: 1\nstd: 1"), HasSubstr("both given"));
  EXPECT_THAT(problem("[1]"), HasSubstr("a mapping is needed"));
  EXPECT_THAT(problem("a: ["), HasSubstr("not usable: "));
}

TEST(PictureTest, SaysWhatDoesNotFit) {
  const auto problem = [](const PictureForm& form, const Shape& shape) {
    return std::string(ValuesOf(Colours(), form, shape).status().message());
  };
  EXPECT_THAT(problem({}, {1, 8, 8, 3}),
              HasSubstr("the picture has 1 x 2 pixels, and the input 8 x 8; write resize: true"));
  EXPECT_THAT(problem({}, {3, 1, 3}), HasSubstr("say which by layout: NCHW or layout: NHWC"));
  EXPECT_THAT(problem({}, {1, 7}), HasSubstr("an input of shape [1,7] takes no picture"));
  EXPECT_THAT(problem({.mean = {1, 2, 3}, .layout = kLast.layout}, {1, 1, 2, 1}),
              HasSubstr("3 numbers of mean, and the input has 1 channels"));
}

}  // namespace
}  // namespace npuc
