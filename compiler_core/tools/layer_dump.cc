#include "compiler_core/tools/layer_dump.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/backends/integer/layer_outputs.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/port_values.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/report/xlsx.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/graph_runner.h"
#include "compiler_core/tools/simulation.h"

namespace npuc {
namespace {

// The distance between two tensors.
struct Difference {
  double max_abs = 0;
  double rms = 0;
  double cosine = 1;  // 1 where both are zero throughout
};

Difference Compare(const std::vector<float>& a, const std::vector<float>& b) {
  Difference difference;
  double squares = 0;
  double product = 0;
  double of_a = 0;
  double of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i];
    const double y = b[i];
    difference.max_abs = std::max(difference.max_abs, std::abs(x - y));
    squares += (x - y) * (x - y);
    product += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  if (!a.empty()) difference.rms = std::sqrt(squares / static_cast<double>(a.size()));
  if (of_a > 0 || of_b > 0) {
    difference.cosine = of_a > 0 && of_b > 0 ? product / std::sqrt(of_a * of_b) : 0;
  }
  return difference;
}

// Runs a LayerOutputs on one item, and writes what its layers give.
class Dumper {
 public:
  Dumper(const LayerOutputs& layers, const CompileRequest& request, std::string folder,
         Diagnostics& diagnostics)
      : layers_(layers), request_(request), folder_(std::move(folder)), diagnostics_(diagnostics) {}

  absl::Status Dump(const std::vector<NamedArray>& inputs, const std::set<int>& ids) {
    RETURN_IF_ERROR(CheckIds(ids));
    ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                     Simulator::Load(layers_.model, "the built model", diagnostics_));
    SimulatorRunner core(*simulator);
    ASSIGN_OR_RETURN(const RunItemsResult stored,
                     RunItems(core, inputs, 1, diagnostics_, RunValues::kStoredResults));
    GraphRunner reference(layers_.graph, request_.options);
    ASSIGN_OR_RETURN(const RunItemsResult real,
                     RunItems(reference, RealInputs(core, inputs), 1, diagnostics_));
    std::string table =
        "layer_id,layer,type,dtype,shape,scale,zero_point,cosine,max_abs_error,"
        "rms_error,quantized_file,float_file\n";
    for (const LayerResult& result : layers_.results) {
      if (!ids.empty() && ids.count(result.layer_id) == 0) continue;
      RETURN_IF_ERROR(WriteResult(result, stored.outputs[result.output].array,
                                  real.outputs[result.output].array, table));
    }
    return WriteFileAtomically(PathOf("layers.csv"), table);
  }

 private:
  std::string PathOf(const std::string& name) const {
    return (std::filesystem::path(folder_) / name).string();
  }

  absl::Status CheckIds(const std::set<int>& ids) {
    for (const int id : ids) {
      const bool known =
          std::any_of(layers_.results.begin(), layers_.results.end(),
                      [id](const LayerResult& result) { return result.layer_id == id; });
      if (known) continue;
      diagnostics_.Add({.kind = DiagnosticKind::kRunInputInvalid,
                        .message = absl::StrCat("layer ", id,
                                                " is asked for; no layer that "
                                                "computes has this number"),
                        .file = request_.options.model_name,
                        .fix = "leave out the numbers: layers.csv lists all"});
    }
    return diagnostics_.ToStatus();
  }

  absl::Status WriteResult(const LayerResult& result, const NpyArray& stored, const NpyArray& real,
                           std::string& table) const {
    const PortTensor& port = layers_.model.outputs[result.output];
    const std::string stem = absl::StrFormat("%04d_%s", result.layer_id, FileStem(port.name));
    const std::string stored_name = stem + ".npy";
    const std::string real_name = stem + "_float.npy";
    ASSIGN_OR_RETURN(const std::string stored_bytes, WriteNpy(stored));
    ASSIGN_OR_RETURN(const std::string real_bytes, WriteNpy(real));
    RETURN_IF_ERROR(WriteFileAtomically(PathOf(stored_name), stored_bytes));
    RETURN_IF_ERROR(WriteFileAtomically(PathOf(real_name), real_bytes));
    const Difference difference = Compare(RealValues(port, stored), FloatsOf(real));
    absl::StrAppend(&table, result.layer_id, ",", CsvField(Printable(result.layer)), ",",
                    CsvField(result.type), ",", NameOf(port.dtype), ",",
                    absl::StrJoin(port.shape, "x"), ",",
                    absl::StrFormat("%.9g,%d,%.9f,%.6g,%.6g", port.scale, port.zero_point,
                                    difference.cosine, difference.max_abs, difference.rms),
                    ",", CsvField(stored_name), ",", CsvField(real_name), "\n");
    return absl::OkStatus();
  }

  const LayerOutputs& layers_;
  const CompileRequest& request_;
  const std::string folder_;
  Diagnostics& diagnostics_;
};

absl::StatusOr<LayerOutputs> LayersOf(const CompileRequest& request, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(Graph imported, ImportModel(request, diagnostics));
  return MakeLayerOutputs(request, std::move(imported), diagnostics);
}

}  // namespace

absl::StatusOr<std::set<int>> LayerIdsOf(const LayerDump& dump) {
  std::set<int> ids;
  if (dump.all) return ids;
  for (const absl::string_view part : absl::StrSplit(dump.layer_ids, ',', absl::SkipEmpty())) {
    int id = 0;
    if (!absl::SimpleAtoi(part, &id) || id < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dump_tensors takes layer numbers such as 3,5; found '",
                       Printable(dump.layer_ids, 80), "'"));
    }
    ids.insert(id);
  }
  return ids;
}

absl::Status DumpRun(const CompileRequest& request, const std::vector<std::string>& files,
                     const std::set<int>& layer_ids, const std::string& folder,
                     Diagnostics& diagnostics) {
  Diagnostics found;  // the compile has told the rest
  const absl::StatusOr<LayerOutputs> layers = LayersOf(request, found);
  if (!layers.ok()) {
    diagnostics.Append(found);
    return layers.status();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(layers->model, "the built model", diagnostics));
  SimulatorRunner runner(*simulator);
  const std::vector<std::string> named = NamedInputs(files, runner, diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  const std::vector<NamedArray> inputs = LoadInputs(named, runner, diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  return Dumper(*layers, request, folder, diagnostics).Dump(inputs, layer_ids);
}

absl::Status DumpCalibration(const CompileRequest& request, const std::string& folder,
                             Diagnostics& diagnostics) {
  const std::vector<SampleFile> files = CalibrationFilesOf(request);
  if (files.empty()) {
    diagnostics.Add({.kind = DiagnosticKind::kCalibrationData,
                     .message = "dump in QUANT shows tensors of a calibration sample, and there is "
                                "no calibration_data",
                     .file = request.options.model_name,
                     .fix = "name a NumPy file in QUANT: calibration_data, or remove dump"});
    return diagnostics.ToStatus();
  }
  Diagnostics found;
  const absl::StatusOr<LayerOutputs> layers = LayersOf(request, found);
  if (!layers.ok()) {
    diagnostics.Append(found);
    return layers.status();
  }
  const std::set<size_t> states(layers->state_inputs.begin(), layers->state_inputs.end());
  ASSIGN_OR_RETURN(const SampleSet samples, SampleSet::Open(files, layers->graph, states));
  std::vector<std::vector<float>> values;
  RETURN_IF_ERROR(samples.Read(0, values));
  std::vector<NamedArray> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueId id = layers->graph.inputs()[i];
    NamedArray& input = inputs.emplace_back();
    input.name = layers->graph.def(id).source.name;
    input.array = {.dtype = DType::kFloat32, .shape = layers->graph.type(id).shape, .bytes = {}};
    input.array.bytes.assign(reinterpret_cast<const char*>(values[i].data()),
                             values[i].size() * sizeof(float));
  }
  return Dumper(*layers, request, folder, diagnostics).Dump(inputs, {});
}

}  // namespace npuc
