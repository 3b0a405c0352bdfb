#include "compiler_core/base/diagnostic.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/diagnostic_text.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/utf8.h"

namespace npuc {
namespace {

constexpr DiagnosticKindInfo kKinds[] = {
#define NPUC_DIAGNOSTIC(number, name, severity, code, summary) \
  {DiagnosticKind::k##name, #name, Severity::severity, absl::StatusCode::code, summary},
#define NPUC_DIAGNOSTIC_RETIRED(number, summary)
#include "compiler_core/base/diagnostic_kinds.inc"
#undef NPUC_DIAGNOSTIC
#undef NPUC_DIAGNOSTIC_RETIRED
};

}  // namespace

absl::Span<const DiagnosticKindInfo> AllDiagnosticKinds() { return kKinds; }

const DiagnosticKindInfo& InfoOf(DiagnosticKind kind) {
  for (const DiagnosticKindInfo& info : kKinds) {
    if (info.kind == kind) return info;
  }
  NPUC_CHECK(false);
  return kKinds[0];
}

absl::string_view NameOf(Severity severity) {
  if (severity == Severity::kError) return "error";
  return severity == Severity::kWarning ? "warning" : "note";
}

std::string IdOf(DiagnosticKind kind) {
  return absl::StrFormat("NPUC%04d", static_cast<int>(kind));
}

std::string Diagnostic::ToString() const { return RenderDiagnostic(TextOf(*this)); }

void Diagnostics::Add(Diagnostic diagnostic) {
  if (diagnostic.severity() == Severity::kError) ++error_count_;
  if (list_.size() >= kMaxDiagnostics) {
    ++dropped_count_;
    return;
  }
  list_.push_back(std::move(diagnostic));
}

void Diagnostics::Append(const Diagnostics& other) {
  for (const Diagnostic& d : other.list_) Add(d);
  dropped_count_ += other.dropped_count_;
}

absl::Status Diagnostics::ToStatus() const {
  if (error_count_ == 0) return absl::OkStatus();
  for (const Diagnostic& d : list_) {
    if (d.severity() != Severity::kError) continue;
    std::string text = d.ToString();
    if (error_count_ > 1) {
      absl::StrAppend(&text, " (and ", error_count_ - 1, " more)");
    }
    return absl::Status(InfoOf(d.kind).code, text);
  }
  return absl::InternalError("errors were found after too many warnings to keep");
}

std::string NearestMatch(absl::string_view word, absl::Span<const absl::string_view> candidates) {
  // Edit distance; a letter in the other case counts as equal.
  constexpr size_t kMaxLength = 128;
  const auto distance = [](absl::string_view a, absl::string_view b) {
    std::vector<int> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
    for (size_t i = 1; i <= a.size(); ++i) {
      int diagonal = row[0];
      row[0] = static_cast<int>(i);
      for (size_t j = 1; j <= b.size(); ++j) {
        const int replace = absl::ascii_tolower(a[i - 1]) == absl::ascii_tolower(b[j - 1]) ? 0 : 1;
        const int best = std::min({row[j] + 1, row[j - 1] + 1, diagonal + replace});
        diagonal = row[j];
        row[j] = best;
      }
    }
    return row[b.size()];
  };
  if (word.size() > kMaxLength) return "";
  absl::string_view best;
  int best_distance = -1;
  for (absl::string_view candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size());
    const size_t shorter = std::min(word.size(), candidate.size());
    const int limit = std::max(static_cast<int>(longer / 3), 1);
    // The distance is at least the difference in length.
    if (longer > kMaxLength || static_cast<int>(longer - shorter) > limit) continue;
    const int d = distance(word, candidate);
    // Where every letter differs, as between two names of one letter, nothing is alike.
    if (d <= limit && d < static_cast<int>(longer) && (best_distance < 0 || d < best_distance)) {
      best = candidate;
      best_distance = d;
    }
  }
  return std::string(best);
}

namespace {

// The code point of one valid UTF-8 sequence.
uint32_t CodePointOf(absl::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  uint32_t code_point = sequence.size() == 1 ? first : first & (0x7f >> sequence.size());
  for (const char c : sequence.substr(1)) {
    code_point = code_point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  }
  return code_point;
}

// Characters that one does not see and that change how others are shown: controls beyond ASCII,
// marks that turn the direction of text, spaces of no width, line ends, tags.
bool IsHiddenControl(uint32_t code_point) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x80, 0x9f},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200f},   {0x2028, 0x202e},
      {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
  };
  return std::any_of(std::begin(kRanges), std::end(kRanges), [&](const auto& range) {
    return code_point >= range.first && code_point <= range.second;
  });
}

}  // namespace

std::string Printable(absl::string_view text, size_t max_bytes) {
  // Nearly every name, and names are written by the thousand.
  const bool is_plain =
      text.size() <= max_bytes &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (is_plain) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= max_bytes) {
      out += "...";
      break;
    }
    const size_t length = Utf8SequenceLength(text, i);
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (length == 0 || c < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", c);
      ++i;
      continue;
    }
    const uint32_t code_point = CodePointOf(text.substr(i, length));
    if (IsHiddenControl(code_point)) {
      absl::StrAppendFormat(&out, "\\u%04x", code_point);
    } else {
      out.append(text.data() + i, length);
    }
    i += length;
  }
  return out;
}

}  // namespace npuc
