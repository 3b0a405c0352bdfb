#ifndef NPUC_COMPILER_CORE_EMIT_SMALL_MODEL_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_EMIT_SMALL_MODEL_TEST_UTIL_H_

// For tests alone.

#include "compiler_core/emit/artifact.h"

namespace npuc {

// A compiled net with a state, a scalar and a name that C cannot have; its commands mean nothing.
inline CompiledModel SmallModel() {
  CompiledModel m;
  m.version = "1.0";
  m.model_md5 = "d41d8cd98f00b204e9800998ecf8427e";
  m.npu_unit = "NPU32";
  m.model_info = "(20260101000000)";
  m.core = "GRUS";
  m.inputs = {{"Feats", {1, 2}, DType::kFloat16, 0, -1},
              {"State/c0", {1, 3}, DType::kFloat16, 4, -1}};
  m.outputs = {{"State/c0_out", {1, 3}, DType::kFloat16, 0, 1},
               {"prob:1", {1, 2}, DType::kFloat32, 6, -1},
               {"loss", {}, DType::kFloat32, 14, -1}};
  m.cmd_content = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xab, 0xff};
  m.weight_content = {0x10};
  m.data_bytes = 40;
  return m;
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_SMALL_MODEL_TEST_UTIL_H_
