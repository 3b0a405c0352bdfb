#ifndef NPUC_SERVER_BASE_INPUT_FILE_H_
#define NPUC_SERVER_BASE_INPUT_FILE_H_

#include <cstdint>
#include <string>

namespace npuc::base {

// The role of the model.
inline constexpr char kModelRole[] = "MODEL_FILE";

// A file that a job reads, from the request to the worker: the model, or what else its config
// names.
struct InputFile {
  std::string role = {};  // the config key: "MODEL_FILE", "OPT_CONFIG"
  std::string name = {};  // for diagnostics, as the user named it: "model.pb"
  std::string sha256 = {};
  std::string md5 = {};  // of the same bytes; empty: not known
  uint64_t size_bytes = 0;

  friend bool operator==(const InputFile&, const InputFile&) = default;
};

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_INPUT_FILE_H_
