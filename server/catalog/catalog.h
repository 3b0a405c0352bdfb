#ifndef NPUC_SERVER_CATALOG_CATALOG_H_
#define NPUC_SERVER_CATALOG_CATALOG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::catalog {

// The cores that can be compiled for and the operators that they accept, as plain data for the
// wire: the server's only look at the core descriptions. Pure and thread-safe.

// Canonical names, sorted.
std::vector<std::string> ListCoreNames();

struct OperatorEntry {
  std::string core;
  std::string framework;  // "TF"
  std::string op;
  std::vector<std::string> restrictions;  // sentences without a full stop
};

// By core, framework, operator. Empty strings stand for all. INVALID_ARGUMENT: unknown core or
// framework; the known ones are named.
absl::StatusOr<std::vector<OperatorEntry>> ListOperators(absl::string_view core,
                                                         absl::string_view framework);

}  // namespace npuc::catalog

#endif  // NPUC_SERVER_CATALOG_CATALOG_H_
