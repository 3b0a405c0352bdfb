#include "compiler_core/frontends/common/feature_extraction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace npuc::frontend {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FeatureExtraction, TheNetBeginsBehindTheLastOperator) {
  FeatureExtraction features;
  features.AddNode("MatMul", {"flat", "weights"}, {"logits"});
  features.AddNode("DecodeWav", {"wav"}, {"sound", "rate"});
  features.AddNode("AudioSpectrogram", {"sound"}, {"spectrogram"});
  features.AddNode("Mfcc", {"spectrogram", "rate"}, {"mfcc"});
  features.AddNode("Reshape", {"mfcc", "shape"}, {"flat"});
  EXPECT_THAT(features.Results(), ElementsAre("mfcc"));
  EXPECT_TRUE(features.FeedsItAlone("wav"));
  EXPECT_TRUE(features.FeedsItAlone("rate"));
  EXPECT_FALSE(features.FeedsItAlone("mfcc"));
  EXPECT_FALSE(features.FeedsItAlone("weights"));
  EXPECT_FALSE(features.FeedsItAlone("no such tensor"));
  EXPECT_EQ(features.Operators(), "DecodeWav, AudioSpectrogram, Mfcc");
}

TEST(FeatureExtraction, OperatorsBetweenBelongToIt) {
  FeatureExtraction features;
  features.AddNode("SignalWindow", {"frame"}, {"windowed"});
  features.AddNode("CAST", {"windowed"}, {"wide"});
  features.AddNode("SignalRfft", {"wide"}, {"spectrum"});
  features.AddNode("CONV_2D", {"spectrum"}, {"y"});
  EXPECT_THAT(features.Results(), ElementsAre("spectrum"));
  EXPECT_TRUE(features.FeedsItAlone("frame"));
}

TEST(FeatureExtraction, WhatTheNetReadsTooStaysAnInput) {
  FeatureExtraction features;
  features.AddNode("AudioSpectrogram", {"sound"}, {"spectrogram"});
  features.AddNode("Add", {"spectrogram", "sound"}, {"y"});
  EXPECT_FALSE(features.FeedsItAlone("sound"));
}

TEST(FeatureExtraction, AModelOfNothingElseHasNoNet) {
  FeatureExtraction features;
  features.AddNode("AudioSpectrogram", {"sound"}, {"spectrogram"});
  features.AddNode("Mfcc", {"spectrogram", "rate"}, {"mfcc"});
  EXPECT_THAT(features.Results(), IsEmpty());
  EXPECT_FALSE(features.FeedsItAlone("sound"));
}

TEST(FeatureExtraction, ACircleEnds) {
  FeatureExtraction features;
  features.AddNode("Mfcc", {"b"}, {"a"});
  features.AddNode("Merge", {"a", "b"}, {"b"});
  EXPECT_THAT(features.Results(), IsEmpty());
  EXPECT_FALSE(features.FeedsItAlone("b"));
}

TEST(FeatureExtraction, KnowsOperatorsByName) {
  EXPECT_TRUE(FeatureExtraction::IsExtraction("SignalFilterBankLog"));
  EXPECT_FALSE(FeatureExtraction::IsExtraction("Signal"));
  EXPECT_FALSE(FeatureExtraction::IsExtraction("Signals"));
}

}  // namespace
}  // namespace npuc::frontend
