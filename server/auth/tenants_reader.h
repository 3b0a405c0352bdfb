#ifndef NPUC_SERVER_AUTH_TENANTS_READER_H_
#define NPUC_SERVER_AUTH_TENANTS_READER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/yaml_tree.h"
#include "server/auth/tenants.h"

namespace npuc::auth {

// Internal to auth: reads the tenants file into a directory. Strict: what it does not know is an
// error with the nearest known word. Not thread-safe.
class TenantsReader {
 public:
  // All must outlive this.
  TenantsReader(absl::string_view name, Diagnostics& diagnostics, TenantDirectory& directory)
      : name_(name), diagnostics_(diagnostics), directory_(directory) {}

  void Read(absl::string_view text);

 private:
  // Where in the file something belongs, e.g. "tenants.audio.quota", and its keys.
  struct Mapping {
    const ConfigNode& node;
    std::string path;
  };

  void ReadTenant(const ConfigNode& key, const ConfigNode& value);
  void ReadQuota(const Mapping& mapping, TenantQuota& quota);
  void ReadIdentity(const ConfigNode& key, const ConfigNode& value, const std::string& tenant);
  void ReadRights(const Mapping& mapping, Rights& rights);
  void ReadTokens(const Mapping& mapping, size_t identity);
  // Reads the names below `key`, each of which belongs to one identity; `fix` says what to write.
  void ReadNames(const Mapping& mapping, absl::string_view key, absl::string_view fix,
                 size_t identity, std::map<std::string, size_t, std::less<>>& names);
  void ReadExpiry(const Mapping& mapping, absl::Time& expires);

  // Whether it is a mapping whose keys are all among `known`; says what is wrong with the others.
  bool CheckMapping(const Mapping& mapping, absl::Span<const absl::string_view> known);
  bool CheckName(const ConfigNode& key, absl::string_view what);
  // The value of `key`; null where it is not there.
  static const ConfigNode* Find(const Mapping& mapping, absl::string_view key);
  std::optional<int64_t> ReadNumber(const Mapping& mapping, absl::string_view key, int64_t min,
                                    int64_t max, bool bytes);
  // False where it is not there.
  bool ReadBool(const Mapping& mapping, absl::string_view key);
  // The texts of a scalar or of a list of scalars.
  std::vector<const ConfigNode*> ReadTexts(const Mapping& mapping, absl::string_view key);

  void Report(DiagnosticKind kind, const ConfigNode& at, std::string message, std::string fix);

  const std::string name_;
  Diagnostics& diagnostics_;
  TenantDirectory& directory_;
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_TENANTS_READER_H_
