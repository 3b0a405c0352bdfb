#include "compiler_core/tools/histogram_picture.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/tools/files.h"

namespace npuc {
namespace {

constexpr int kWidth = 960;
constexpr int kHeight = 560;
constexpr int kScale = 2;
constexpr int kLine = Picture::kGlyphHeight * kScale + 6;
constexpr int kMargin = 16;
constexpr int kPlotLeft = 120;
constexpr int kPlotTop = 120;
constexpr int kPlotWidth = 800;
constexpr int kPlotHeight = 360;
constexpr int kTick = 6;
constexpr int kHorizontalLabels = 5;
constexpr size_t kNameCharacters = 100;

constexpr Color kBlack = {0, 0, 0};
constexpr Color kGrid = {220, 220, 220};
constexpr Color kBar = {40, 90, 170};
constexpr Color kRange = {200, 30, 30};

// The step 1, 2 or 5 times a power of ten of which at most five reach `most`; at least 1.
double TickStep(double most) {
  double step = 1;
  while (most / step > 5) {
    for (const double next : {2.0, 5.0, 10.0}) {
      if (most / (step * next) <= 5 || next == 10.0) {
        step *= next;
        break;
      }
    }
  }
  return step;
}

void DrawCentred(Picture& picture, int x, int y, const std::string& text, Color color) {
  const int width = Picture::TextWidth(text, kScale);
  const int left = std::clamp(x - width / 2, 0, std::max(0, picture.width() - width));
  picture.Text(left, y, text, kScale, color);
}

// The middle is cut out of a name that is too long: both ends tell most.
std::string Shortened(const std::string& name) {
  constexpr size_t kMost = (kWidth - 2 * kMargin) / (Picture::kGlyphWidth * kScale);
  if (name.size() <= kMost) return name;
  const size_t part = (kMost - 3) / 2;
  return absl::StrCat(name.substr(0, part), "...", name.substr(name.size() - part));
}

void DrawWords(Picture& picture, const WeightHistogram& weight) {
  const Histogram& h = weight.values;
  std::vector<std::string> lines;
  lines.push_back(Shortened(Printable(weight.name)));
  lines.push_back(absl::StrFormat("shape [%s], %d values, %d exactly zero, %d not finite",
                                  absl::StrJoin(weight.shape, ","), h.total + h.not_finite, h.zeros,
                                  h.not_finite));
  lines.push_back(absl::StrFormat("min %.5g  max %.5g  mean %.5g", h.min, h.max, h.mean));
  lines.push_back(
      weight.compressed
          ? absl::StrFormat("8 bits, range [%.5g, %.5g], sparsity %.2f%%", weight.range_min,
                            weight.range_max, 100 * weight.sparsity)
          : absl::StrFormat("fp16, not compressed, sparsity %.2f%%", 100 * weight.sparsity));
  int y = kMargin;
  for (const std::string& line : lines) {
    picture.Text(kMargin, y, line, kScale, kBlack);
    y += kLine;
  }
}

void DrawAxes(Picture& picture, const Histogram& h, const HistogramPlot& plot) {
  const int bottom = plot.top + plot.height;
  for (double count = 0; count <= plot.full; count += TickStep(plot.full)) {
    const int y = bottom - static_cast<int>(std::lround(count / plot.full * plot.height));
    if (count > 0) picture.Fill(plot.left, y, plot.width, 1, kGrid);
    picture.Fill(plot.left - kTick, y, kTick, 1, kBlack);
    const std::string label = absl::StrFormat("%.6g", count);
    picture.Text(plot.left - kTick - 4 - Picture::TextWidth(label, kScale),
                 y - Picture::kGlyphHeight * kScale / 2, label, kScale, kBlack);
  }
  for (int i = 0; i < kHorizontalLabels; ++i) {
    const int x = plot.left + plot.width * i / (kHorizontalLabels - 1);
    picture.Fill(x, bottom, 1, kTick, kBlack);
    const double value = h.low + (h.high - h.low) * i / (kHorizontalLabels - 1);
    DrawCentred(picture, x, bottom + kTick + 4, absl::StrFormat("%.4g", value), kBlack);
  }
  picture.Text(kMargin, plot.top - kLine, "count", kScale, kBlack);
  DrawCentred(picture, plot.left + plot.width / 2, bottom + kTick + 4 + kLine,
              absl::StrFormat("value, %d bins of %.4g", h.counts.size(), h.Edge(1) - h.low),
              kBlack);
  picture.Fill(plot.left - 1, plot.top, 1, plot.height + 1, kBlack);
  picture.Fill(plot.left - 1, bottom, plot.width + 1, 1, kBlack);
}

void DrawBars(Picture& picture, const Histogram& h, const HistogramPlot& plot) {
  const int bins = static_cast<int>(h.counts.size());
  for (int i = 0; i < bins; ++i) {
    if (h.counts[i] == 0) continue;
    const int left = plot.left + plot.width * i / bins;
    const int right = plot.left + plot.width * (i + 1) / bins;
    // One value among a million is still to be seen.
    const int height = std::max(1, static_cast<int>(std::lround(static_cast<double>(h.counts[i]) /
                                                                plot.full * plot.height)));
    picture.Fill(left, plot.top + plot.height - height, right - left, height, kBar);
  }
}

// The ends of the compressed range, where they lie within the values.
void DrawRange(Picture& picture, const WeightHistogram& weight, const HistogramPlot& plot) {
  if (!weight.compressed) return;
  const Histogram& h = weight.values;
  for (const double end : {weight.range_min, weight.range_max}) {
    const double share = (end - h.low) / (h.high - h.low);
    if (!(share >= 0) || share > 1) continue;
    const int x = plot.left + static_cast<int>(std::lround(share * plot.width));
    picture.Fill(x - 1, plot.top, 2, plot.height, kRange);
  }
}

}  // namespace

HistogramPlot PlotOf(const Histogram& histogram) {
  HistogramPlot plot{kPlotLeft, kPlotTop, kPlotWidth, kPlotHeight, 1};
  for (const int64_t count : histogram.counts) {
    plot.full = std::max(plot.full, static_cast<double>(count));
  }
  return plot;
}

Picture DrawHistogram(const WeightHistogram& weight) {
  Picture picture(kWidth, kHeight);
  const HistogramPlot plot = PlotOf(weight.values);
  DrawWords(picture, weight);
  DrawAxes(picture, weight.values, plot);
  DrawBars(picture, weight.values, plot);
  DrawRange(picture, weight, plot);
  return picture;
}

std::vector<std::string> HistogramFileNames(absl::Span<const WeightHistogram> weights) {
  std::vector<std::string> names;
  std::set<std::string> taken;        // in lower case
  std::map<std::string, int> copies;  // by base: the number to try next, so that equal names are
                                      // not counted from the start each time
  for (const WeightHistogram& weight : weights) {
    std::string base = weight.name.substr(0, kNameCharacters);
    for (char& c : base) {
      const bool safe = absl::ascii_isalnum(c) || c == '.' || c == '-';
      if (!safe) c = '_';
    }
    // Neither a hidden file nor one that a command takes for an option.
    if (base.empty() || base[0] == '.' || base[0] == '-') base = absl::StrCat("_", base);
    std::string name = base;
    int& copy = copies.try_emplace(absl::AsciiStrToLower(base), 2).first->second;
    while (!taken.insert(absl::AsciiStrToLower(name)).second) {
      name = absl::StrCat(base, "_", copy++);
    }
    names.push_back(name + ".jpg");
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> WriteHistograms(absl::Span<const WeightHistogram> weights,
                                                         const std::string& folder) {
  const std::vector<std::string> names = HistogramFileNames(weights);
  std::vector<std::string> paths;
  for (size_t i = 0; i < weights.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string bytes, EncodeJpeg(DrawHistogram(weights[i])));
    paths.push_back((std::filesystem::path(folder) / names[i]).string());
    RETURN_IF_ERROR(WriteFileAtomically(paths.back(), bytes));
  }
  return paths;
}

}  // namespace npuc
