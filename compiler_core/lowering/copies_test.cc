#include "compiler_core/lowering/copies.h"

#include <string>
#include <vector>

#include "compiler_core/ir/cmd/access.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// A program of vector commands on buffers of one input, data, and outputs.
class Maker {
 public:
  BufferId Add(Slot slot, int64_t elements) {
    program_.buffers.push_back({slot, 2 * elements, -1, ""});
    return BufferId(static_cast<int32_t>(program_.buffers.size() - 1));
  }
  BufferId Input(int64_t elements) {
    program_.inputs.push_back({"x", {elements}});
    return Add(Slot::kInput, elements);
  }
  BufferId Data(int64_t elements) { return Add(Slot::kData, elements); }
  BufferId Output(int64_t elements, int state_input = -1) {
    program_.outputs.push_back({"y", {elements}});
    program_.outputs.back().state_input = state_input;
    return Add(Slot::kOutput, elements);
  }
  void Copy(BufferId a, int64_t a_at, BufferId d, int64_t d_at, int64_t n) {
    Push(VectorCommand::Kind::kCopy, a, a_at, d, d_at, n, "copy");
  }
  void Relu(BufferId a, int64_t a_at, BufferId d, int64_t d_at, int64_t n) {
    Push(VectorCommand::Kind::kActivation, a, a_at, d, d_at, n, "relu");
  }
  void Activate(Activation activation, BufferId a, int64_t a_at, BufferId d, int64_t d_at,
                int64_t n) {
    Relu(a, a_at, d, d_at, n);
    std::get<VectorCommand>(program_.commands.back().body).activation = activation;
  }
  void FullyConnected(BufferId a, BufferId d, uint16_t n) {
    FullyConnectedCommand fc;
    fc.a = {a, 0};
    fc.d = {d, 0};
    fc.n = fc.k = n;
    Command command;
    command.body = fc;
    program_.commands.push_back(command);
  }
  // The number of commands that are left.
  size_t Commands() {
    DropCopies(program_);
    return program_.commands.size();
  }
  // Rows of n elements, d_stride apart in d.
  void CopyRows(BufferId a, BufferId d, int64_t d_at, int64_t rows, int64_t n, int64_t d_stride) {
    Copy(a, 0, d, d_at, n);
    auto& v = std::get<VectorCommand>(program_.commands.back().body);
    v.extents[1] = static_cast<uint16_t>(rows);
    v.a_middle_stride = static_cast<uint16_t>(n);
    v.d_middle_stride = static_cast<uint16_t>(d_stride);
  }
  // The commands that are left: "relu b1+0 b2+8".
  std::vector<std::string> Dropped() {
    DropCopies(program_);
    std::vector<std::string> lines;
    for (const Command& command : program_.commands) {
      const auto& v = std::get<VectorCommand>(command.body);
      lines.push_back(command.node + " b" + std::to_string(v.a.buffer.value()) + "+" +
                      std::to_string(v.a.offset_bytes / 2) + " b" +
                      std::to_string(v.d.buffer.value()) + "+" +
                      std::to_string(v.d.offset_bytes / 2));
    }
    return lines;
  }

 private:
  void Push(VectorCommand::Kind kind, BufferId a, int64_t a_at, BufferId d, int64_t d_at, int64_t n,
            const std::string& name) {
    VectorCommand v;
    v.kind = kind;
    v.a = {a, 2 * a_at};
    v.d = {d, 2 * d_at};
    v.extents = {1, 1, static_cast<uint16_t>(n)};
    Command command;
    command.body = v;
    command.node = name;
    program_.commands.push_back(command);
  }

  Program program_;
};

using Lines = std::vector<std::string>;

TEST(DropCopies, ResultsAreWrittenIntoTheConcatenation) {
  Maker m;
  const BufferId x = m.Input(4);
  const BufferId a = m.Data(4);
  const BufferId b = m.Data(4);
  const BufferId both = m.Data(8);
  const BufferId y = m.Output(8);
  m.Relu(x, 0, a, 0, 4);
  m.Relu(a, 0, b, 0, 4);
  m.Copy(a, 0, both, 0, 4);
  m.Copy(b, 0, both, 4, 4);
  m.Relu(both, 0, y, 0, 8);
  EXPECT_EQ(m.Dropped(), (Lines{"relu b0+0 b3+0", "relu b3+0 b3+4", "relu b3+0 b4+0"}));
}

TEST(DropCopies, NoResultIsWrittenToAPlaceInUse) {
  Maker m;
  const BufferId x = m.Input(4);
  const BufferId place = m.Data(4);
  const BufferId a = m.Data(4);
  const BufferId y = m.Output(4);
  m.Relu(x, 0, place, 0, 4);
  m.Relu(x, 0, a, 0, 4);
  m.Relu(place, 0, y, 0, 4);
  m.Copy(a, 0, place, 0, 4);
  m.Relu(place, 0, y, 0, 4);
  // It is computed where it was copied.
  EXPECT_EQ(m.Dropped(),
            (Lines{"relu b0+0 b1+0", "relu b1+0 b3+0", "relu b0+0 b1+0", "relu b1+0 b3+0"}));
}

TEST(DropCopies, ReadersOfASliceReadTheOriginal) {
  Maker m;
  const BufferId x = m.Input(8);
  const BufferId slice = m.Data(4);
  const BufferId y = m.Output(4);
  m.Copy(x, 4, slice, 0, 4);
  m.Relu(slice, 0, y, 0, 4);
  EXPECT_EQ(m.Dropped(), (Lines{"relu b0+4 b2+0"}));
}

// Rows that are written around a place leave it alone; one that reaches into it does not.
TEST(DropCopies, ResultsAreWrittenBetweenFilledRows) {
  for (const uint16_t row : {2, 3}) {
    Maker m;
    const BufferId x = m.Input(8);
    const BufferId a = m.Data(4);
    const BufferId wide = m.Data(10);
    const BufferId y = m.Output(10);
    m.Relu(x, 0, a, 0, 4);
    m.CopyRows(x, wide, 0, 2, row, 6);
    m.Copy(a, 0, wide, 2, 4);
    m.Relu(wide, 0, y, 0, 10);
    Lines want = {"relu b0+0 b2+2", "copy b0+0 b2+0", "relu b2+0 b3+0"};
    if (row > 2) want = {"copy b0+0 b2+0", "relu b0+0 b2+2", "relu b2+0 b3+0"};
    EXPECT_EQ(m.Dropped(), want) << row;
  }
}

TEST(DropCopies, AnOriginalThatIsOverwrittenIsCopied) {
  Maker m;
  const BufferId x = m.Input(4);
  const BufferId a = m.Data(4);
  const BufferId old = m.Data(4);
  const BufferId y = m.Output(8);
  m.Relu(x, 0, a, 0, 4);
  m.Copy(a, 0, old, 0, 4);
  m.Relu(a, 0, a, 0, 4);
  m.Relu(a, 0, y, 0, 4);
  m.Relu(old, 0, y, 4, 4);
  EXPECT_EQ(m.Dropped().size(), 5u);
}

TEST(DropCopies, AStateIsWrittenAtOnceWhereItsInputIsReadNoMore) {
  for (const bool is_read_later : {false, true}) {
    Maker m;
    const BufferId state = m.Input(4);
    const BufferId next = m.Data(4);
    const BufferId b = m.Data(4);
    const BufferId state_out = m.Output(4, 0);
    const BufferId y = m.Output(4);
    m.Relu(state, 0, b, 0, 4);
    m.Relu(b, 0, next, 0, 4);
    m.Relu(is_read_later ? state : b, 0, y, 0, 4);
    m.Copy(next, 0, state_out, 0, 4);
    Lines want = {"relu b0+0 b2+0", "relu b2+0 b3+0", "relu b2+0 b4+0"};
    if (is_read_later) {
      want = {"relu b0+0 b2+0", "relu b0+0 b4+0", "relu b2+0 b3+0"};
    }
    EXPECT_EQ(m.Dropped(), want) << is_read_later;
  }
}

TEST(DropCopies, TheLastCommandStaysAVector) {
  Maker m;
  const BufferId x = m.Input(4);
  const BufferId a = m.Data(4);
  const BufferId y = m.Output(4);
  m.FullyConnected(x, a, 4);
  m.Copy(a, 0, y, 0, 4);
  EXPECT_EQ(m.Commands(), 2u);
}

TEST(DropCopies, NoCommandReadsAnOutput) {
  Maker m;
  const BufferId x = m.Input(4);
  const BufferId a = m.Data(4);
  const BufferId first = m.Output(4);
  const BufferId second = m.Output(4);
  m.Relu(x, 0, a, 0, 4);
  m.Relu(a, 0, second, 0, 4);
  m.Copy(a, 0, first, 0, 4);
  EXPECT_EQ(m.Dropped(), (Lines{"relu b0+0 b1+0", "relu b1+0 b3+0", "copy b1+0 b2+0"}));
}

TEST(DropCopies, NoMoreBytesAreAliveThanBefore) {
  Maker m;
  const BufferId x = m.Input(4);
  const BufferId small = m.Data(4);
  const BufferId wide = m.Data(64);
  const BufferId other = m.Data(64);
  const BufferId y = m.Output(64);
  m.Relu(x, 0, other, 0, 4);
  m.Relu(other, 0, small, 0, 4);
  m.Relu(x, 0, other, 0, 64);
  m.Relu(other, 0, y, 0, 64);
  m.Copy(small, 0, wide, 0, 4);
  m.Relu(wide, 0, y, 0, 64);
  // `wide` in place of `small` would live beside `other`.
  EXPECT_EQ(m.Dropped().size(), 6u);
}

TEST(DropCopies, WhatIsCopiedToLongerRowsIsComputedThere) {
  for (const bool is_read_twice : {false, true}) {
    Maker m;
    const BufferId x = m.Input(8);
    const BufferId a = m.Data(8);
    const BufferId b = m.Data(8);
    const BufferId wide = m.Data(12);
    const BufferId y = m.Output(12);
    m.Relu(x, 0, a, 0, 8);
    m.Relu(a, 0, b, 0, 8);
    m.Relu(x, 0, wide, 0, 2);
    m.CopyRows(b, wide, 2, 2, 4, 6);
    if (is_read_twice) m.Relu(b, 0, y, 0, 8);
    m.Relu(wide, 0, y, 0, 12);
    Lines want = {"relu b0+0 b1+0", "relu b0+0 b3+0", "relu b1+0 b3+2", "relu b3+0 b4+0"};
    if (is_read_twice) {
      want = {"relu b0+0 b1+0", "relu b1+0 b2+0", "relu b0+0 b3+0",
              "copy b2+0 b3+2", "relu b2+0 b4+0", "relu b3+0 b4+0"};
    }
    EXPECT_EQ(m.Dropped(), want);
  }
}

// Two copies, one behind what reads the first: both compute the function, a slow one only where
// they read nothing twice.
TEST(DropCopies, WhatIsCopiedInPartsIsComputedByEachCopy) {
  for (const auto& [rows, activation, is_computed] : {std::tuple{2, Activation::kRelu, true},
                                                      {3, Activation::kRelu, true},
                                                      {2, Activation::kTanh, true},
                                                      {3, Activation::kTanh, false}}) {
    Maker m;
    const BufferId x = m.Input(8);
    const BufferId a = m.Data(8);
    const BufferId first = m.Data(12);
    const BufferId second = m.Data(18);
    const BufferId y = m.Output(18);
    m.Activate(activation, x, 0, a, 0, 8);
    m.Relu(x, 0, first, 0, 2);
    m.CopyRows(a, first, 2, 2, 2, 6);
    m.Relu(first, 0, y, 0, 12);
    m.Relu(x, 0, second, 0, 2);
    m.CopyRows(a, second, 2, rows, 2, 6);
    m.Relu(second, 0, y, 0, 18);
    EXPECT_EQ(m.Dropped().size(), is_computed ? 6u : 7u) << rows << is_computed;
  }
}

// Two parts are copied side by side, and a function of both is computed: by the copies, if nothing
// else reads them and its place is free.
TEST(DropCopies, AFunctionOfCopiedPartsIsComputedByTheCopies) {
  enum class Case { kFree, kReadTwice, kPlaceInUse };
  for (const Case c : {Case::kFree, Case::kReadTwice, Case::kPlaceInUse}) {
    Maker m;
    const BufferId x = m.Input(8);
    const BufferId parts = m.Data(8);
    const BufferId both = m.Data(8);
    const BufferId d = m.Data(8);
    const BufferId y = m.Output(8);
    if (c == Case::kPlaceInUse) m.Relu(x, 0, d, 0, 8);
    m.FullyConnected(x, parts, 8);
    m.CopyRows(parts, both, 0, 2, 2, 4);
    m.CopyRows(parts, both, 2, 2, 2, 4);
    if (c == Case::kPlaceInUse) m.Relu(d, 0, y, 0, 8);
    m.Relu(both, 0, d, 0, 8);
    if (c == Case::kReadTwice) m.Relu(both, 0, y, 0, 8);
    m.FullyConnected(d, parts, 8);
    m.Relu(parts, 0, y, 0, 8);
    const size_t written = c == Case::kFree ? 6 : c == Case::kReadTwice ? 7 : 8;
    EXPECT_EQ(m.Commands(), c == Case::kFree ? written - 1 : written) << static_cast<int>(c);
  }
}

TEST(DropCopies, CopiesToOutputsMoveWhereThatFreesTheirSource) {
  Maker m;
  const BufferId x = m.Input(64);
  const BufferId part = m.Data(64);
  const BufferId a = m.Data(64);
  const BufferId b = m.Data(64);
  const BufferId half = m.Output(32);
  const BufferId y = m.Output(64);
  m.Relu(x, 0, part, 0, 64);
  m.Relu(part, 0, a, 0, 64);
  m.Relu(a, 0, b, 0, 64);
  m.Relu(b, 0, y, 0, 64);
  m.Copy(part, 0, half, 0, 32);
  EXPECT_EQ(m.Dropped(), (Lines{"relu b0+0 b1+0", "relu b1+0 b2+0", "copy b1+0 b4+0",
                                "relu b2+0 b3+0", "relu b3+0 b5+0"}));
}

// A command that fills a whole output runs before the copy of what lies inside it.
TEST(DropCopies, CopiesToOutputsStayBehindWhatWritesTheSameBytes) {
  for (const bool overlaps : {true, false}) {
    Maker m;
    const BufferId x = m.Input(64);
    const BufferId fill = m.Add(Slot::kWeight, 40);
    const BufferId part = m.Data(64);
    const BufferId a = m.Data(64);
    const BufferId b = m.Data(64);
    const BufferId padded = m.Output(96);
    const BufferId y = m.Output(64);
    m.Relu(x, 0, part, 0, 64);
    m.Relu(part, 0, a, 0, 64);
    m.Relu(a, 0, b, 0, 64);
    m.Relu(b, 0, y, 0, 64);
    m.Copy(fill, 0, padded, overlaps ? 0 : 48, 40);
    m.Copy(part, 0, padded, 4, 32);
    Lines want = {"relu b0+0 b2+0", "relu b2+0 b3+0", "relu b3+0 b4+0",
                  "relu b4+0 b6+0", "copy b1+0 b5+0", "copy b2+0 b5+4"};
    if (!overlaps) {
      want = {"relu b0+0 b2+0", "relu b2+0 b3+0", "copy b2+0 b5+4",
              "relu b3+0 b4+0", "relu b4+0 b6+0", "copy b1+0 b5+48"};
    }
    EXPECT_EQ(m.Dropped(), want) << overlaps;
  }
}

}  // namespace
}  // namespace npuc
