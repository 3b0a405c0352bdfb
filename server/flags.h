#ifndef NPUC_SERVER_FLAGS_H_
#define NPUC_SERVER_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"

namespace npuc {

// npucd's command line.
struct Flags {
  std::string data_dir;
  std::string listen = "127.0.0.1:8470";
  std::string http;  // HOST:PORT; empty: no HTTP
  bool insecure = false;
  int workers = 0;  // >= 1 after ParseFlags
  std::string port_file;
  bool help = false;
  bool version = false;
};

// `--name value` or `--name=value`. INVALID_ARGUMENT names what is wrong, options of later versions
// included (--tls-cert, --tls-key, --client-ca, --tenants, --config): none is silently ignored.
// Without --help and --version the result can be served: --data-dir is given, --insecure is given,
// and the addresses are loopback ones.
absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv);

std::string FlagsHelp();

}  // namespace npuc

#endif  // NPUC_SERVER_FLAGS_H_
