#include "compiler_core/tools/run_command.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/boxes/box_plan.h"
#include "compiler_core/emit/disassemble.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/box_picture.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/profile.h"
#include "compiler_core/tools/run_items.h"
#include "compiler_core/tools/set_commands.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int64_t kMaxRegionBytes = int64_t{1} << 28;

using BoxesOfItem = std::vector<DetectedBox>;

// The numbers of --regions, of which the settings want `count`.
absl::StatusOr<std::vector<float>> RegionsOf(const RunCommandArgs& args, int64_t count,
                                             Diagnostics& diagnostics) {
  const auto refuse = [&](std::string message, std::string fix) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = std::move(message),
                     .file = args.regions_path,
                     .fix = std::move(fix)});
    return diagnostics.ToStatus();
  };
  if (args.regions_path.empty()) {
    if (count == 0) return std::vector<float>();
    return refuse("boxes of type RCNN are relative to regions, and none are given",
                  "name them: --regions FILE.npy");
  }
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(args.regions_path, kMaxRegionBytes));
  const absl::StatusOr<NpyArray> array = ReadNpy(bytes);
  if (!array.ok()) return refuse(std::string(array.status().message()), "");
  if (array->element_count() == count) return FloatsOf(*array);
  return refuse(absl::StrCat("holds ", array->element_count(), " numbers; the settings want ",
                             count, ", four for each region of each item"),
                "give the regions that the second half of the net was run on");
}

// The boxes of each item, by the settings that the command names.
absl::StatusOr<std::vector<BoxesOfItem>> BoxesOf(const RunCommandArgs& args,
                                                 const CompiledModel& model,
                                                 const RunItemsResult& result,
                                                 Diagnostics& diagnostics) {
  const absl::StatusOr<std::string> text = ReadFile(args.boxes_path, kMaxYamlBytes);
  if (!text.ok()) AddFileProblem(text.status(), diagnostics);
  RETURN_IF_ERROR(text.status());
  std::optional<BoxSettings> settings = ParseBoxSettings(*text, args.boxes_path, diagnostics);
  if (!settings.has_value()) return diagnostics.ToStatus();
  const std::optional<BoxPlan> plan =
      BoxPlan::Make(*std::move(settings), model.outputs, args.boxes_path, diagnostics);
  if (!plan.has_value()) return diagnostics.ToStatus();
  std::vector<std::vector<float>> values;
  for (const NamedArray& output : result.outputs) values.push_back(FloatsOf(output.array));
  ASSIGN_OR_RETURN(const std::vector<float> regions,
                   RegionsOf(args, result.items * plan->region_count() * 4, diagnostics));
  std::vector<BoxesOfItem> items;
  for (int64_t item = 0; item < result.items; ++item) {
    std::vector<const float*> outputs;
    for (size_t i = 0; i < values.size(); ++i) {
      outputs.push_back(values[i].data() + item * ElementCount(model.outputs[i].shape));
    }
    if (plan->region_count() > 0) {
      outputs.push_back(regions.data() + item * plan->region_count() * 4);
    }
    items.push_back(plan->Decode(outputs));
  }
  return items;
}

Json BoxesJson(const std::vector<BoxesOfItem>& items) {
  Json json = Json::array();
  for (const BoxesOfItem& item : items) {
    Json boxes = Json::array();
    for (const DetectedBox& box : item) {
      boxes.push_back({{"class", box.class_id},
                       {"score", box.score},
                       {"box", Json::array({box.x0, box.y0, box.x1, box.y1})}});
    }
    json.push_back(std::move(boxes));
  }
  return json;
}

// Writes DIR/boxes_NAME.jpg for each picture that was an item: the picture with its boxes. Nothing
// where the inputs are arrays.
absl::Status WritePictures(const RunCommandArgs& args, const std::vector<BoxesOfItem>& items,
                           Json& paths) {
  for (const std::string& input : args.inputs) {
    if (input == "random" || absl::StartsWith(input, "random:")) continue;
    const size_t equals = input.find('=');
    const std::string path = equals == std::string::npos ? input : input.substr(equals + 1);
    ASSIGN_OR_RETURN(const std::vector<PictureFile> pictures, PicturesOf(path));
    if (pictures.size() < items.size()) continue;  // --frames may have left out the last ones
    for (size_t i = 0; i < items.size(); ++i) {
      const std::filesystem::path to =
          std::filesystem::path(args.output_dir) / absl::StrCat("boxes_", pictures[i].name, ".jpg");
      ASSIGN_OR_RETURN(const std::string bytes, DrawBoxes(pictures[i].bytes, items[i]));
      RETURN_IF_ERROR(WriteFileAtomically(to.string(), bytes));
      if (!args.json) {
        std::printf("%zu boxes -> %s\n", items[i].size(), Printable(to.string()).c_str());
      }
      paths.push_back(to.string());
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status AddBoxes(const RunCommandArgs& args, const CompiledModel& model,
                      const RunItemsResult& result, Json& report, Diagnostics& diagnostics) {
  if (args.boxes_path.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<BoxesOfItem> items, BoxesOf(args, model, result, diagnostics));
  report["boxes"] = BoxesJson(items);
  if (!args.output_dir.empty()) {
    const std::filesystem::path path = std::filesystem::path(args.output_dir) / "boxes.json";
    RETURN_IF_ERROR(
        WriteFileAtomically(path.string(), absl::StrCat(DumpJson(report["boxes"]), "\n")));
    report["pictures"] = Json::array();
    return WritePictures(args, items, report["pictures"]);
  }
  if (!args.json) std::fprintf(stdout, "%s\n", DumpJson(report["boxes"]).c_str());
  return absl::OkStatus();
}

absl::Status Run(const RunCommandArgs& args, Json& report, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(ModelSet set, LoadModels(args.artifact, diagnostics));
  ASSIGN_OR_RETURN(const CompiledModel model, ChooseModel(std::move(set), args.model, args.inputs,
                                                          args.artifact, diagnostics));
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, args.artifact, diagnostics));
  if (args.frames < 0) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = absl::StrCat("--frames ", args.frames, " is negative")});
  }
  const auto is_float = [](const PortTensor& port) { return port.scale <= 0; };
  if (args.raw && std::all_of(model.inputs.begin(), model.inputs.end(), is_float) &&
      std::all_of(model.outputs.begin(), model.outputs.end(), is_float)) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = "--raw is for inputs and outputs that are stored as integers; this "
                                "artifact has none"});
  }
  if (args.raw && !args.boxes_path.empty()) {
    diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                     .message = "--postprocess decodes real values, and --raw gives stored ones",
                     .fix = "leave out one of the two"});
  }
  SimulatorRunner runner(*simulator);
  const std::vector<NamedArray> inputs = LoadInputs(args.inputs, runner, diagnostics);
  if (diagnostics.has_errors()) return diagnostics.ToStatus();
  ASSIGN_OR_RETURN(const RunItemsResult result,
                   RunItems(runner, inputs, args.frames, diagnostics,
                            args.raw ? RunValues::kStored : RunValues::kReal));
  report["items"] = result.items;
  RETURN_IF_ERROR(WriteOutputs(args.output_dir, !args.json, result, report["outputs"]));
  RETURN_IF_ERROR(AddBoxes(args, model, result, report, diagnostics));
  if (args.profile_path.empty()) return absl::OkStatus();
  if (absl::EndsWith(args.profile_path, ".bin")) {
    return WriteFileAtomically(args.profile_path, ProfileBytes(model, *simulator));
  }
  const auto profile = ProfileJson(*simulator, result.items, CoresOf(model.core) > 1);
  return WriteFileAtomically(args.profile_path, absl::StrCat(DumpJson(profile), "\n"));
}

}  // namespace

int RunArtifactCommand(const RunCommandArgs& args) {
  Diagnostics diagnostics;
  Json report;
  report["ok"] = false;
  report["items"] = 0;
  report["outputs"] = Json::array();
  const absl::Status status = Run(args, report, diagnostics);
  const int code = Finish(status, diagnostics);
  if (args.json) PrintReport(std::move(report), code == kDone, diagnostics);
  return code;
}

int DisassembleCommand(const std::string& artifact, bool json) {
  Diagnostics diagnostics;
  const absl::StatusOr<CompiledModel> model = LoadArtifact(artifact, diagnostics);
  const Disassembly listing = model.ok() ? DisassembleModel(*model) : Disassembly();
  const int code = Finish(model.status(), diagnostics);
  const bool ok = code == kDone && listing.complete;
  if (json) {
    PrintReport({{"ok", ok},
                 {"commands", listing.command_count},
                 {"end", listing.end_bytes},
                 {"text", listing.text}},
                ok, diagnostics);
  } else {
    std::fwrite(listing.text.data(), 1, listing.text.size(), stdout);
  }
  return ok ? kDone : kRefused;
}

}  // namespace npuc
