#ifndef NPUC_COMPILER_CORE_PIPELINE_COMPILE_H_
#define NPUC_COMPILER_CORE_PIPELINE_COMPILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_sink.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/native_operators.h"
#include "compiler_core/pipeline/summary.h"
#include "compiler_core/report/histogram.h"

namespace npuc {

// What a compile reads. The caller owns the bytes and keeps them for the call.
struct CompileRequest {
  CompileOptions options;
  absl::string_view model_bytes;
  // Returns Md5Hex(model_bytes). Called at most once, when the header is about to be written: a
  // caller that computes it on another thread waits there. Null: Compile computes it.
  std::function<std::string()> model_md5;
  // Further files the config names, by role ("OPT_CONFIG"): name for diagnostics, and bytes, which
  // are read in parts where there may be many (calibration data).
  struct SideInput {
    std::string name;
    std::shared_ptr<const ByteSource> bytes;
  };
  std::map<std::string, SideInput> side_inputs;
  // Runs the libraries that files of PLUGINS name. Null: those are refused, as the daemon does.
  NativeOperators* native_operators = nullptr;
  // Seconds since 1970 for the header's model_info, UTC. The only input besides the above that
  // changes output bytes, and only in that line.
  int64_t timestamp_seconds = 0;
  bool wants_listings = false;  // whether CompileResult has them
};

// A file that a compile makes. Its bytes may be written on any thread, and after the compile, too.
struct Artifact {
  std::string name;  // "model.h", "opt_template.json" ...: a base name, unique in a compile
  ByteWriter write;
};

// Text that -v, -m, -w and a profile ask for.
struct CompileListings {
  std::string ops;            // -v
  std::string memory;         // -m
  std::string weights;        // -w
  std::string profile_graph;  // graph.json, for profiles (profile_graph.h)
};

struct CompileResult {
  CompileSummary summary;
  CompileListings listings;  // if wanted
  // With options.save_histograms: of the weights that -w lists, in its order. -s draws them.
  std::vector<WeightHistogram> histograms;
};

// Watches and steers a running compile. Called on the compiling thread. Must outlive the call.
class CompileObserver {
 public:
  virtual ~CompileObserver() = default;
  // A line for compile.log and the live log; no newline.
  virtual void OnLog(absl::string_view line) {}
  // A stage begins. fraction: share of the whole already done, 0..1, never falling.
  virtual void OnStage(absl::string_view stage, double fraction) {}
  // An artifact is complete. They come in a fixed order, the header first. Whatever follows may
  // still fail, and then none of them counts.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): other observers keep it
  virtual void OnArtifact(Artifact artifact) {}
  // Asked between and inside stages; true ends the compile with CANCELLED.
  virtual bool IsCancelled() { return false; }
};

// Compiles one model; its artifacts go to the observer. Pure: no files, no clock, no environment,
// no output but through the observer and the results; same request, same bytes, on any machine.
// Every problem goes to `diagnostics`; the status repeats the first error's text and code.
// Thread-safe: any number of calls may run at once.
absl::StatusOr<CompileResult> Compile(const CompileRequest& request, CompileObserver& observer,
                                      Diagnostics& diagnostics);

// "npuc 0.1.0" and an id that differs between builds whose output could differ (part of the cache
// key).
absl::string_view CompilerVersion();
absl::string_view CompilerBuildId();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_COMPILE_H_
