#include "compiler_core/quant/data/sample_set.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/npy.h"

namespace npuc {
namespace {

constexpr absl::string_view kArrayEnding = ".npy";

std::string FileForm(absl::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c == '/' || c == ':') c = '_';
  }
  return out;
}

absl::StatusOr<bool> IsArchive(const ByteSource& bytes) {
  char magic[4] = {};
  const int64_t magic_bytes = std::min<int64_t>(sizeof(magic), bytes.size());
  RETURN_IF_ERROR(bytes.Read(0, absl::MakeSpan(magic, magic_bytes)));
  return LooksLikeZip(absl::string_view(magic, magic_bytes));
}

// The folder that a name begins with, "" where there is none.
absl::string_view FolderOf(absl::string_view name) {
  const size_t slash = name.find('/');
  return slash == absl::string_view::npos ? "" : name.substr(0, slash);
}

// Drops the folder in which an archive has everything.
void DropCommonFolder(std::vector<ZipFile>& entries) {
  const std::string folder(entries.empty() ? "" : FolderOf(entries[0].name));
  const bool is_common = std::all_of(entries.begin(), entries.end(), [&](const ZipFile& entry) {
    return FolderOf(entry.name) == folder;
  });
  if (folder.empty() || !is_common) return;
  for (ZipFile& entry : entries) entry.name.erase(0, folder.size() + 1);
}

// Takes the files out of the entries that say what pictures and sounds become.
absl::StatusOr<SampleForms> TakeForms(const SampleFile& file, std::vector<ZipFile>& entries) {
  SampleForms forms = file.forms;
  for (const absl::string_view name : kFormFiles) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const ZipFile& entry) { return entry.name == name; });
    if (found == entries.end()) continue;
    const absl::Status status = ReadForm(name, found->bytes, forms);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Printable(file.name), ":", name, ": ", status.message()));
    }
    entries.erase(found);
  }
  return forms;
}

// Gives each input its files.
class Binder {
 public:
  Binder(const std::vector<SampledInput>& inputs, std::vector<InputSamples>& samples)
      : inputs_(inputs), samples_(samples) {
    for (const SampledInput& input : inputs) {
      samples_.emplace_back(input.name, input.shape);
      needed_ += input.may_lack ? 0 : 1;
    }
    while (only_ < inputs.size() && inputs[only_].may_lack) ++only_;
    has_only_ = inputs.size() == 1 || needed_ == 1;
    if (only_ == inputs.size()) only_ = 0;
  }

  absl::Status Bind(const SampleFile& file) {
    ASSIGN_OR_RETURN(const bool is_archive, IsArchive(*file.bytes));
    if (!file.input.empty() || has_only_) {
      const size_t input = file.input.empty() ? only_ : Find(file.input);
      if (input == inputs_.size()) return NoInput(file);
      if (samples_[input].size() > 0) {
        return InFile(file, absl::InvalidArgumentError("its input has samples already"));
      }
      if (!is_archive) return samples_[input].Add(file);
      return BindArchive(file, file.input.empty() ? inputs_.size() : input);
    }
    if (is_archive) return BindArchive(file, inputs_.size());
    return InFile(file,
                  absl::InvalidArgumentError(absl::StrCat(
                      "one array for a model of ", inputs_.size(),
                      " inputs; give an .npz file, or a file or folder for each input by name")));
  }

 private:
  size_t Find(absl::string_view name) const {
    const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const SampledInput& input) {
      return FileForm(input.name) == FileForm(name);
    });
    return static_cast<size_t>(found - inputs_.begin());
  }

  absl::Status NoInput(const SampleFile& file) const {
    const std::string names =
        absl::StrJoin(inputs_, ", ", [](std::string* out, const SampledInput& input) {
          absl::StrAppend(out, Printable(input.name));
        });
    const std::string problem =
        file.input.empty() ? "it lies in no folder that has the name of one of the model's inputs"
                           : absl::StrCat("the model has no input '", Printable(file.input), "'");
    return InFile(file, absl::InvalidArgumentError(absl::StrCat(
                            problem, file.input.empty() ? ": " : "; it has: ", names)));
  }

  absl::StatusOr<std::vector<ZipFile>> EntriesOf(const SampleFile& file) const {
    const absl::StatusOr<std::string> whole = ReadAll(*file.bytes, SampleSet::kMaxArchiveBytes);
    if (!whole.ok()) return InFile(file, whole.status());
    absl::StatusOr<std::vector<ZipFile>> entries = ReadArchive(*whole, SampleSet::kMaxArchiveBytes);
    if (!entries.ok()) return InFile(file, entries.status());
    return entries;
  }

  // An archive for one input, or for all where `input` is none of them.
  absl::Status BindArchive(const SampleFile& file, size_t input) {
    ASSIGN_OR_RETURN(std::vector<ZipFile> entries, EntriesOf(file));
    const bool is_for_one = input < inputs_.size() || has_only_;
    if (HasNames(entries, is_for_one)) return BindNamed(file, std::move(entries));
    DropCommonFolder(entries);
    ASSIGN_OR_RETURN(const SampleForms forms, TakeForms(file, entries));
    for (ZipFile& entry : entries) {
      size_t of = input;
      if (of == inputs_.size() && has_only_) of = only_;
      if (of == inputs_.size()) of = Find(FolderOf(entry.name));
      const SampleFile inside{std::string(FolderOf(entry.name)),
                              absl::StrCat(file.name, ":", entry.name),
                              std::make_shared<OwnedSource>(std::move(entry.bytes)), forms};
      if (of == inputs_.size()) return NoInput(inside);
      RETURN_IF_ERROR(samples_[of].Add(inside));
    }
    return absl::OkStatus();
  }

  // Whether these are the arrays of an .npz file for the inputs, and not samples of one of them.
  bool HasNames(const std::vector<ZipFile>& entries, bool is_for_one) const {
    const auto is_input = [&](const ZipFile& entry) {
      return Find(absl::StripSuffix(entry.name, kArrayEnding)) < inputs_.size();
    };
    const auto is_flat = [](const ZipFile& entry) {
      return absl::EndsWith(entry.name, kArrayEnding) && FolderOf(entry.name).empty();
    };
    if (is_for_one) return std::any_of(entries.begin(), entries.end(), is_input);
    return std::all_of(entries.begin(), entries.end(), is_input) ||
           std::all_of(entries.begin(), entries.end(), is_flat);
  }

  absl::Status BindNamed(const SampleFile& file, std::vector<ZipFile> entries) {
    const bool only_one = entries.size() == 1 && inputs_.size() == 1;
    for (ZipFile& entry : entries) {
      const SampleFile inside{std::string(absl::StripSuffix(entry.name, kArrayEnding)),
                              absl::StrCat(file.name, ":", entry.name),
                              std::make_shared<OwnedSource>(std::move(entry.bytes))};
      const size_t input = only_one ? 0 : Find(inside.input);
      if (input == inputs_.size()) return NoInput(inside);
      RETURN_IF_ERROR(samples_[input].Add(inside));
    }
    return absl::OkStatus();
  }

  const std::vector<SampledInput>& inputs_;
  std::vector<InputSamples>& samples_;
  size_t needed_ = 0;
  size_t only_ = 0;  // the input that a file without a name is for
  bool has_only_ = false;
};

}  // namespace

absl::StatusOr<SampleSet> SampleSet::Open(const std::vector<SampleFile>& files,
                                          const std::vector<SampledInput>& inputs) {
  SampleSet set;
  set.inputs_ = inputs;
  Binder binder(set.inputs_, set.samples_);
  for (const SampleFile& file : files) RETURN_IF_ERROR(binder.Bind(file));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSamples& samples = set.samples_[i];
    if (samples.size() == 0) {
      if (inputs[i].may_lack) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("no samples for input '", Printable(inputs[i].name), "'"));
    }
    if (set.size_ > 0 && samples.size() != set.size_) {
      return absl::InvalidArgumentError(absl::StrCat(Printable(samples.name()), ": it holds ",
                                                     samples.size(), " samples, another input has ",
                                                     set.size_));
    }
    set.size_ = samples.size();
  }
  if (set.size_ < 1) return absl::InvalidArgumentError("there are no samples");
  return set;
}

absl::StatusOr<SampleSet> SampleSet::Open(const std::vector<SampleFile>& files, const Graph& graph,
                                          const std::set<size_t>& may_lack) {
  std::vector<SampledInput> inputs;
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.def(id).source.name;
    if (graph.type(id).dtype != DType::kFloat32) {
      return absl::InvalidArgumentError(absl::StrCat("input '", Printable(name), "' is not f32"));
    }
    inputs.push_back({name, graph.type(id).shape, may_lack.contains(inputs.size())});
  }
  return Open(files, inputs);
}

absl::Status SampleSet::Read(int64_t index, std::vector<std::vector<float>>& inputs) const {
  NPUC_CHECK(index >= 0 && index < size_);
  inputs.resize(samples_.size());
  for (size_t i = 0; i < samples_.size(); ++i) {
    RETURN_IF_ERROR(samples_[i].Read(index, inputs[i]));
  }
  return absl::OkStatus();
}

void SampleSet::SetSamples(size_t input, const std::string& name, absl::Span<const float> values) {
  const SampledInput& of = inputs_[input];
  NPUC_CHECK(static_cast<int64_t>(values.size()) == size_ * ElementCount(of.shape));
  NpyArray array;
  array.dtype = DType::kFloat32;
  array.shape = of.shape;
  array.shape.insert(array.shape.begin(), size_);
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const absl::StatusOr<std::string> file = WriteNpy(array);
  samples_[input] = InputSamples(of.name, of.shape);
  NPUC_CHECK(file.ok() &&
             samples_[input].Add({"", name, std::make_shared<OwnedSource>(*file)}).ok());
}

absl::StatusOr<std::vector<double>> ReadNumbers(absl::string_view npy) {
  ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(npy));
  const int64_t count = array.element_count();
  const bool one_each = array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1);
  if (!one_each || count < 1 || count > SampleSet::kMaxSamples) {
    return absl::InvalidArgumentError(absl::StrCat("an array of shape ", ShapeToString(array.shape),
                                                   " is not one number a sample"));
  }
  std::vector<float> values(static_cast<size_t>(count));
  NpyElements(array.dtype, array.bytes.data(), values);
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace npuc
