#include "compiler_core/quant/data/sound_form.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/quant/data/form_yaml.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;

constexpr int64_t kMaxWindow = 65536;
constexpr int64_t kMaxMels = 1024;

class FormReader {
 public:
  explicit FormReader(SoundForm& form) : form_(form) {}

  absl::Status Read(const ConfigNode& key, const ConfigNode& value) {
    key_ = &key;
    value_ = &value;
    const std::string& name = key.text;
    if (name == "rate") return Integer(1, 1 << 24, form_.rate);
    if (name == "window") return Integer(1, kMaxWindow, form_.window);
    if (name == "hop") return Integer(1, kMaxWindow, form_.hop);
    if (name == "fft") return Integer(2, kMaxWindow, form_.fft);
    if (name == "mels") return Integer(1, kMaxMels, form_.mels);
    if (name == "coefficients") return Integer(1, kMaxMels, form_.coefficients);
    if (name == "low") return Number(0, 1e7, form_.low);
    if (name == "high") return Number(0, 1e7, form_.high);
    if (name == "floor") return Number(1e-30, 1e6, form_.floor);
    if (name == "mean") return Number(-1e6, 1e6, form_.mean);
    if (name == "scale") return Number(-1e6, 1e6, form_.scale);
    if (name == "std") {
      double std_value = 1;
      RETURN_IF_ERROR(Number(1e-9, 1e9, std_value));
      form_.scale = 1 / std_value;
      return absl::OkStatus();
    }
    if (name == "fit") return Choice({"false", "true"}, form_.fits);
    if (name == "channel") return Choice({"", "first", "mean"}, form_.channel);
    if (name == "features") {
      return Choice({"samples", "spectrum", "power", "mel", "mfcc"}, form_.features);
    }
    if (name == "window_form") return Choice({"hann", "hamming", "none"}, form_.window_form);
    if (name == "log") return Choice({"none", "ln", "log10", "db"}, form_.log);
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", key.line, ": '", Printable(name, 80),
        "' is none of rate, channel, fit, features, window, hop, fft, window_form, mels, low, "
        "high, log, floor, coefficients, mean, scale, std"));
  }

 private:
  absl::Status Wrong(const std::string& allowed) const {
    return WrongFormValue(*key_, *value_, allowed);
  }
  bool IsPlain() const { return value_->kind == Kind::kScalar && value_->plain; }

  absl::Status Integer(int64_t least, int64_t most, int64_t& field) const {
    int64_t number = 0;
    if (!IsPlain() || !absl::SimpleAtoi(value_->text, &number) || number < least || number > most) {
      return Wrong(absl::StrCat("an integer from ", least, " to ", most));
    }
    field = number;
    return absl::OkStatus();
  }

  absl::Status Number(double least, double most, double& field) const {
    double number = 0;
    if (!IsPlain() || !absl::SimpleAtod(value_->text, &number) || !(number >= least) ||
        !(number <= most)) {
      return Wrong(absl::StrCat("a number from ", least, " to ", most));
    }
    field = number;
    return absl::OkStatus();
  }

  // The field's value is the number of the word.
  template <typename T>
  absl::Status Choice(const std::vector<std::string>& words, T& field) const {
    for (size_t i = 0; i < words.size(); ++i) {
      if (value_->kind != Kind::kScalar || words[i].empty() || value_->text != words[i]) continue;
      field = static_cast<T>(i);
      return absl::OkStatus();
    }
    const size_t first = words[0].empty() ? 1 : 0;
    return Wrong(absl::StrJoin(words.begin() + static_cast<ptrdiff_t>(first), words.end(), " or "));
  }

  SoundForm& form_;
  const ConfigNode* key_ = nullptr;
  const ConfigNode* value_ = nullptr;
};

absl::Status Check(const SoundForm& form) {
  if ((form.fft & (form.fft - 1)) != 0 || form.fft < form.window) {
    return absl::InvalidArgumentError(
        absl::StrCat("fft is ", form.fft, " for a window of ", form.window,
                     "; it must be a power of two, and at least the window"));
  }
  if (form.high != 0 && form.high <= form.low) {
    return absl::InvalidArgumentError(
        absl::StrCat("high is ", form.high, " and low ", form.low, "; high must be above low"));
  }
  if (form.coefficients > form.mels && form.features == SoundForm::Features::kMfcc) {
    return absl::InvalidArgumentError(absl::StrCat(form.coefficients, " coefficients of ",
                                                   form.mels, " mels; there are as many at most"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SoundForm> SoundFormFromYaml(absl::string_view text) {
  SoundForm form;
  FormReader reader(form);
  RETURN_IF_ERROR(ReadFormYaml(
      text, kSoundFormFile, "features: mfcc",
      [&](const ConfigNode& key, const ConfigNode& value) { return reader.Read(key, value); }));
  RETURN_IF_ERROR(Check(form));
  return form;
}

}  // namespace npuc
