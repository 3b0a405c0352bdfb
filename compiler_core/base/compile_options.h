#ifndef NPUC_COMPILER_CORE_BASE_COMPILE_OPTIONS_H_
#define NPUC_COMPILER_CORE_BASE_COMPILE_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/framework.h"
#include "compiler_core/base/preprocess.h"
#include "compiler_core/base/quant_options.h"

namespace npuc {

// One INPUT_OPS entry. For TF `name` is a node name, optionally NAME:K; for PT a decimal index.
struct InputDecl {
  std::string name;
  std::vector<int64_t> shape;  // inference-time shape, every dimension >= 1
};

// One CONST_INPUTS entry: an input that has the same value at every inference.
struct ConstInput {
  std::string name;            // as InputDecl has it
  std::vector<double> values;  // one, or those of a list
  bool is_list = false;
  bool is_whole = false;  // written as integers, or as true and false

  bool operator==(const ConstInput&) const = default;
};

// Every setting of a compile that can change its output. The config parser fills it; stages get it
// whole and read-only; CanonicalOptions() of it is part of the cache key. Each field has a row in
// compile_options.inc. Source of names and defaults: shared/spec/gxnpuc.md section 2.
struct CompileOptions {
  std::string core;      // canonical core name: "GRUS", never an alias
  std::string npu_unit;  // "NPU32"
  Framework framework = Framework::kTensorFlow;
  std::string model_name;   // base name of MODEL_FILE; diagnostics and artifacts carry it
  std::string output_type;  // "c_code"
  std::string output_file;  // base name of OUTPUT_FILE, e.g. "model.h"
  std::vector<InputDecl> inputs;
  std::vector<ConstInput> const_inputs;
  std::map<std::string, int64_t> dims;  // DIMS: named dimensions of ONNX inputs
  std::vector<PreprocessStep> preprocess;
  std::vector<std::string> outputs;       // OUTPUT_OPS in order; NAME or NAME:K
  std::vector<std::string> fp16_outputs;  // FP16_OUT_OPS: names (TF), decimal indices (PT)
  std::vector<std::string> keep_states;   // KEEP_STATES: recurrent layers, or "*"
  std::vector<int64_t> input_ncx_to_nxc;  // INPUT_NCX_TO_NXC
  bool fuse_bn = false;
  bool fuse_biasadd = false;
  bool compress = false;
  bool conv2d_compress = false;
  std::vector<std::string> exclude_compress_ops;
  std::vector<std::string> exclude_conv2d_compress_ops;
  std::map<std::string, std::pair<double, double>> weight_min_max;
  std::optional<int64_t> weight_cache_size_bytes;
  std::string model_info;  // text added to the header's model_info
  // Where run-time buffers lie. Always buffers whose lives do not overlap share bytes.
  // kCompatible: a command's result never overlaps its operands, as in every published header.
  // kInPlace: GRUS: an element-wise command may overwrite an operand that dies there. Integer
  // cores: results may lie over rows of their operands that are dead, and the structs of inputs
  // and outputs lie in data_content.
  // kAuto: kCompatible on GRUS, kInPlace on the integer cores.
  enum class MemoryPlan : uint8_t { kAuto, kCompatible, kInPlace };
  MemoryPlan memory_plan = MemoryPlan::kAuto;
  // Integer cores. kSize: layers in stripes of rows where that needs less RAM (memplan/stripes.h).
  enum class Optimize : uint8_t { kSpeed, kSize };
  Optimize optimize = Optimize::kSpeed;
  // SRAM_LIMIT: of data_content, struct input and struct output together.
  std::optional<int64_t> sram_limit_bytes;
  std::optional<QuantOptions> quant;  // QUANT, of the integer cores
  bool save_histograms = false;       // -s
  int64_t layer_error_frames = 0;     // compared with float32, for the report; 0..256
  // CORES: how many of a core's cores share each layer; without it all of them.
  std::optional<int64_t> cores;
  bool code_weights = true;  // CODE_WEIGHTS: weights of integer cores in a lossless code
  bool keep_dead = false;    // KEEP_DEAD: channels that change no output are compiled, too
  std::string boxes;         // BOXES: settings of boxes (../boxes), a mapping of YAML
  bool strict_ops = false;   // STRICT_OPS: the vendor's list of operators, without rewrites
  // LEO: how compressed weights are coded; nullopt: 8 bits.
  std::optional<int64_t> compress_quant_bits;
  enum class CompressType : uint8_t { kLinear, kGaussian };
  CompressType compress_type = CompressType::kLinear;
  bool space_optimization = false;
  bool float16 = false;
  std::optional<int64_t> float16_exp_bits;  // nullopt: 5
};

// The bytes that stand for these options in a cache key: every field, in a fixed order, with
// lengths, so that different options never give equal bytes.
std::string CanonicalOptions(const CompileOptions& options);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_COMPILE_OPTIONS_H_
