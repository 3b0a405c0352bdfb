#include "compiler_core/base/diagnostic_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace npuc {
namespace {

DiagnosticText Note(absl::string_view node, absl::string_view message = "padded beforehand") {
  return {.severity = Severity::kNote,
          .id = "NPUC1203",
          .message = message,
          .file = "m.pt",
          .node = node,
          .op = "Conv2D",
          .fix = "use VALID"};
}

TEST(DiagnosticLines, AlikeNotesShareTheLineOfTheFirst) {
  const std::vector<DiagnosticText> notes = {Note("a"), Note("b", "split"), Note("c"), Note("d")};
  const std::vector<DiagnosticLine> lines = DiagnosticLines(notes);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text,
            "m.pt: note: node 'a' (Conv2D), and 2 more ('c', 'd'): padded beforehand; use VALID "
            "[NPUC1203]");
  EXPECT_EQ(lines[1].text, RenderDiagnostic(notes[1]));
  EXPECT_EQ(lines[1].severity, Severity::kNote);
}

TEST(DiagnosticLines, OfManyAFewAreNamedAndEachNamePrintable) {
  DiagnosticText error = Note("n\n");
  error.severity = Severity::kError;
  const std::vector<DiagnosticText> errors(kMaxAlikeNodes + 2, error);
  std::string names;
  for (int i = 0; i < kMaxAlikeNodes; ++i) names += "'n\\x0a', ";
  const std::vector<DiagnosticLine> lines = DiagnosticLines(errors);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "m.pt: node 'n\\x0a' (Conv2D), and 17 more (" + names +
                               "...): padded beforehand; use VALID [NPUC1203]");
}

TEST(DiagnosticLines, ANoteNamesAsManyOthersAsFitOneLine) {
  const std::string half(kMaxNoteNameBytes / 2, 'n');
  const std::string whole(kMaxNoteNameBytes, 'n');
  EXPECT_EQ(DiagnosticLines({Note("a"), Note(half), Note("b"), Note(half)})[0].text,
            "m.pt: note: node 'a' (Conv2D), and 3 more ('" + half +
                "', 'b', ...): padded beforehand; use VALID [NPUC1203]");
  EXPECT_EQ(DiagnosticLines({Note("a"), Note(whole), Note("b")})[0].text,
            "m.pt: note: node 'a' (Conv2D), and 2 more: padded beforehand; use VALID [NPUC1203]");
}

TEST(DiagnosticLines, NotesOfSeveralOperatorsShareALineAndErrorsDoNot) {
  DiagnosticText other = Note("b");
  other.op = "MatMul";
  EXPECT_EQ(DiagnosticLines({Note("a"), other}).size(), 1u);
  DiagnosticText error = Note("a");
  error.severity = other.severity = Severity::kError;
  EXPECT_EQ(DiagnosticLines({error, other}).size(), 2u);
}

TEST(DiagnosticLines, AlikeErrorsShareALineAndUnlikeOnesDoNot) {
  DiagnosticText error = Note("a");
  error.severity = Severity::kError;
  DiagnosticText other = error;
  other.node = "b";
  const std::vector<DiagnosticLine> lines = DiagnosticLines({error, Note("c"), other});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text,
            "m.pt: node 'a' (Conv2D), and 1 more ('b'): padded beforehand; use VALID [NPUC1203]");
  EXPECT_EQ(lines[0].severity, Severity::kError);
}

TEST(DiagnosticLines, WhatNamesNoNodeStandsAlone) {
  EXPECT_EQ(DiagnosticLines({Note(""), Note("")}).size(), 2u);
}

// A user copies names into INPUT_OPS, so they are whole up to the readers' limit.
TEST(RenderDiagnostic, PrintsNamesWhole) {
  const std::string name(kMaxNodeNameBytes, 'n');
  const std::string message = "operand '" + name + "' is missing";
  const std::string text = RenderDiagnostic(Note(name, message));
  EXPECT_NE(text.find("node '" + name + "'"), std::string::npos);
  EXPECT_NE(text.find(message), std::string::npos);
}

}  // namespace
}  // namespace npuc
