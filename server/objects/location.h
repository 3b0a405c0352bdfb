#ifndef NPUC_SERVER_OBJECTS_LOCATION_H_
#define NPUC_SERVER_OBJECTS_LOCATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::objects {

// Where a cluster's contents are put.
struct Location {
  enum class Kind : uint8_t { kPostgres, kFolder, kS3 };
  Kind kind = Kind::kPostgres;
  std::string folder = {};  // kFolder: an absolute path
  // kS3.
  std::string bucket = {};
  std::string prefix = {};    // of all names: "a/b/", or empty
  std::string endpoint = {};  // "https://HOST[:PORT]"
  std::string region = {};
  // The bucket stands in the path (https://HOST/BUCKET/NAME), not before the host.
  bool is_path_style = true;
};

// Reads "pg", "file:///FOLDER" and "s3://BUCKET[/PREFIX]?region=R[&endpoint=https://HOST[:PORT]]
// [&style=path|virtual]". Without an endpoint it is Amazon's of the region, in the virtual style;
// http is for this machine alone. INVALID_ARGUMENT says what is wrong and what to write.
absl::StatusOr<Location> ParseLocation(absl::string_view text);

}  // namespace npuc::objects

#endif  // NPUC_SERVER_OBJECTS_LOCATION_H_
