#include "server/auth/tenants_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/civil_time.h"

namespace npuc::auth {
namespace {

using Kind = ConfigNode::Kind;

constexpr absl::string_view kTopKeys[] = {"format", "tenants"};
constexpr absl::string_view kTenantKeys[] = {"weight", "quota", "shared_cache", "identities"};
constexpr absl::string_view kQuotaKeys[] = {"queued_jobs",  "running_jobs", "job_bytes",
                                            "stored_bytes", "result_bytes", "upload_rate",
                                            "call_rate"};
constexpr absl::string_view kIdentityKeys[] = {"token_sha256", "certificate", "oidc", "rights",
                                               "expires"};
constexpr absl::string_view kRightWords[] = {"submit", "read", "cancel", "admin"};

constexpr size_t kMaxProofNameChars = 1024;

// "64MiB", "10GiB", "4096".
bool ParseBytes(absl::string_view text, int64_t& bytes) {
  constexpr std::pair<const char*, int64_t> kUnits[] = {
      {"KiB", int64_t{1} << 10}, {"MiB", int64_t{1} << 20}, {"GiB", int64_t{1} << 30}};
  int64_t unit = 1;
  for (const auto& [suffix, size] : kUnits) {
    if (absl::ConsumeSuffix(&text, suffix)) unit = size;
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0 || number > kMaxTenantBytes / unit)
    return false;
  bytes = number * unit;
  return true;
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

void TenantsReader::Read(absl::string_view text) {
  const std::optional<ConfigNode> root = ParseConfigYaml(text, name_, diagnostics_);
  if (!root.has_value()) return;
  const Mapping top{*root, ""};
  if (!CheckMapping(top, kTopKeys)) return;
  const std::optional<int64_t> format = ReadNumber(top, "format", 1, 1, false);
  if (!format.has_value() && Find(top, "format") == nullptr) {
    Report(DiagnosticKind::kConfigMissingKey, *root, "format is missing", "write format: 1");
  }
  const ConfigNode* tenants = Find(top, "tenants");
  if (tenants == nullptr || tenants->kind != Kind::kMapping || tenants->items.empty()) {
    Report(DiagnosticKind::kConfigMissingKey, tenants == nullptr ? *root : *tenants,
           "tenants is no mapping with a tenant in it",
           "write tenants: and below it a name for each tenant");
    return;
  }
  for (size_t i = 0; i + 1 < tenants->items.size(); i += 2) {
    ReadTenant(tenants->items[i], tenants->items[i + 1]);
  }
}

void TenantsReader::ReadTenant(const ConfigNode& key, const ConfigNode& value) {
  if (!CheckName(key, "tenant")) return;
  Tenant tenant;
  tenant.name = key.text;
  const Mapping mapping{value, absl::StrCat("tenants.", key.text)};
  if (!CheckMapping(mapping, kTenantKeys)) return;
  tenant.weight =
      static_cast<int32_t>(ReadNumber(mapping, "weight", 1, kMaxTenantWeight, false).value_or(1));
  if (const ConfigNode* quota = Find(mapping, "quota")) {
    ReadQuota({*quota, absl::StrCat(mapping.path, ".quota")}, tenant.quota);
  }
  tenant.shared_cache = ReadBool(mapping, "shared_cache");
  if (!directory_.tenants_.emplace(key.text, std::move(tenant)).second) return;  // told already
  const ConfigNode* identities = Find(mapping, "identities");
  if (identities == nullptr) return;
  if (identities->kind != Kind::kMapping) {
    Report(DiagnosticKind::kConfigWrongType, *identities,
           absl::StrCat(mapping.path, ".identities is ", DescribeNode(*identities),
                        ", not a mapping of names"),
           "write a name for each identity, and its keys below");
    return;
  }
  for (size_t i = 0; i + 1 < identities->items.size(); i += 2) {
    ReadIdentity(identities->items[i], identities->items[i + 1], key.text);
  }
}

void TenantsReader::ReadQuota(const Mapping& mapping, TenantQuota& quota) {
  if (!CheckMapping(mapping, kQuotaKeys)) return;
  quota.queued_jobs = ReadNumber(mapping, "queued_jobs", 1, kMaxTenantCount, false);
  quota.running_jobs = ReadNumber(mapping, "running_jobs", 1, kMaxTenantCount, false);
  quota.job_bytes = ReadNumber(mapping, "job_bytes", 1, kMaxTenantBytes, true);
  quota.stored_bytes = ReadNumber(mapping, "stored_bytes", 1, kMaxTenantBytes, true);
  quota.result_bytes = ReadNumber(mapping, "result_bytes", 1, kMaxTenantBytes, true);
  quota.upload_rate = ReadNumber(mapping, "upload_rate", kMinUploadRate, kMaxTenantBytes, true);
  quota.call_rate = ReadNumber(mapping, "call_rate", 1, kMaxTenantCount, false);
}

void TenantsReader::ReadIdentity(const ConfigNode& key, const ConfigNode& value,
                                 const std::string& tenant) {
  if (!CheckName(key, "identity")) return;
  const Mapping mapping{value, absl::StrCat("tenants.", tenant, ".identities.", key.text)};
  if (!CheckMapping(mapping, kIdentityKeys)) return;
  TenantDirectory::Identity identity;
  identity.caller.identity = key.text;
  identity.caller.tenant = tenant;
  ReadRights(mapping, identity.caller.rights);
  ReadExpiry(mapping, identity.expires);
  const size_t index = directory_.identities_.size();
  directory_.identities_.push_back(std::move(identity));
  ReadTokens(mapping, index);
  ReadNames(mapping, "certificate", "write the certificate's URI, DNS name or common name", index,
            directory_.by_certificate_);
  ReadNames(mapping, "oidc", "write a value of the claim that npucd --oidc-claim names", index,
            directory_.by_claim_value_);
  if (Find(mapping, "token_sha256") == nullptr && Find(mapping, "certificate") == nullptr &&
      Find(mapping, "oidc") == nullptr) {
    Report(DiagnosticKind::kConfigMissingKey, key,
           absl::StrCat(mapping.path, " has none of token_sha256, certificate and oidc"),
           "make a token with npucd --new-token and write its SHA-256 here");
  }
}

void TenantsReader::ReadRights(const Mapping& mapping, Rights& rights) {
  if (Find(mapping, "rights") == nullptr) {
    Report(DiagnosticKind::kConfigMissingKey, mapping.node,
           absl::StrCat(mapping.path, " has no rights"),
           absl::StrCat("write rights: with some of ", absl::StrJoin(kRightWords, ", ")));
    return;
  }
  for (const ConfigNode* text : ReadTexts(mapping, "rights")) {
    const auto* word = std::find(std::begin(kRightWords), std::end(kRightWords), text->text);
    if (word == std::end(kRightWords)) {
      const std::string nearest = NearestMatch(text->text, kRightWords);
      Report(DiagnosticKind::kConfigValueNotAllowed, *text,
             absl::StrCat(mapping.path, ".rights: '", Printable(text->text), "' is no right"),
             nearest.empty() ? absl::StrCat("use ", absl::StrJoin(kRightWords, ", "))
                             : absl::StrCat("did you mean ", nearest, "?"));
      continue;
    }
    rights.Add(kAllRights[word - std::begin(kRightWords)]);
  }
}

void TenantsReader::ReadTokens(const Mapping& mapping, size_t identity) {
  for (const ConfigNode* text : ReadTexts(mapping, "token_sha256")) {
    if (!IsSha256(text->text)) {
      // Not shown: somebody may have written the token itself.
      Report(DiagnosticKind::kConfigValueNotAllowed, *text,
             absl::StrCat(mapping.path, ".token_sha256: a text of ", text->text.size(),
                          " characters is no SHA-256"),
             "write the 64 lower-case hexadecimal digits that npucd --new-token printed");
      continue;
    }
    if (!directory_.by_token_sha256_.emplace(text->text, identity).second) {
      Report(DiagnosticKind::kConfigDuplicate, *text,
             absl::StrCat(mapping.path, ".token_sha256: the token stands in the file twice"),
             "give each identity a token of its own");
    }
  }
}

void TenantsReader::ReadNames(const Mapping& mapping, absl::string_view key, absl::string_view fix,
                              size_t identity, std::map<std::string, size_t, std::less<>>& names) {
  for (const ConfigNode* text : ReadTexts(mapping, key)) {
    if (text->text.empty() || text->text.size() > kMaxProofNameChars) {
      Report(DiagnosticKind::kConfigValueNotAllowed, *text,
             absl::StrCat(mapping.path, ".", key, ": a name has 1 to ", kMaxProofNameChars,
                          " characters, not ", text->text.size()),
             std::string(fix));
      continue;
    }
    if (!names.emplace(text->text, identity).second) {
      Report(DiagnosticKind::kConfigDuplicate, *text,
             absl::StrCat(mapping.path, ".", key, ": '", Printable(text->text),
                          "' stands in the file twice"),
             absl::StrCat("give each identity a ", key, " of its own"));
    }
  }
}

void TenantsReader::ReadExpiry(const Mapping& mapping, absl::Time& expires) {
  const ConfigNode* node = Find(mapping, "expires");
  if (node == nullptr) return;
  std::string error;
  absl::CivilDay day;
  if (node->kind == Kind::kScalar && absl::ParseCivilTime(node->text, &day)) {
    expires = absl::FromCivil(day, absl::UTCTimeZone());
  } else if (node->kind != Kind::kScalar ||
             !absl::ParseTime(absl::RFC3339_full, node->text, &expires, &error)) {
    Report(DiagnosticKind::kConfigValueNotAllowed, *node,
           absl::StrCat(mapping.path, ".expires is ", DescribeNode(*node), ", not a date"),
           "write a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z");
  }
}

bool TenantsReader::CheckMapping(const Mapping& mapping,
                                 absl::Span<const absl::string_view> known) {
  const std::string where = mapping.path.empty() ? "the file" : mapping.path;
  if (mapping.node.kind != Kind::kMapping) {
    // Not the text itself, which the log would keep: it may be a key, or a token.
    const bool is_text = mapping.node.kind == Kind::kScalar;
    Report(DiagnosticKind::kConfigWrongType, mapping.node,
           absl::StrCat(where, " is ", is_text ? "plain text" : DescribeNode(mapping.node),
                        ", not a mapping"),
           absl::StrCat("its keys are ", absl::StrJoin(known, ", ")));
    return false;
  }
  for (size_t i = 0; i < mapping.node.items.size(); i += 2) {
    const ConfigNode& key = mapping.node.items[i];
    if (key.kind == Kind::kScalar && std::find(known.begin(), known.end(), key.text) != known.end())
      continue;
    const std::string nearest = NearestMatch(key.text, known);
    Report(DiagnosticKind::kConfigUnknownKey, key,
           absl::StrCat(where, " has an unknown key ", DescribeNode(key)),
           nearest.empty() ? absl::StrCat("its keys are ", absl::StrJoin(known, ", "))
                           : absl::StrCat("did you mean ", nearest, "?"));
  }
  return true;
}

bool TenantsReader::CheckName(const ConfigNode& key, absl::string_view what) {
  const absl::string_view name = key.text;
  const bool good =
      key.kind == Kind::kScalar && !name.empty() && name.size() <= kMaxTenantNameChars &&
      absl::ascii_islower(name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '_';
      });
  if (good) return true;
  Report(DiagnosticKind::kConfigValueNotAllowed, key,
         absl::StrCat(DescribeNode(key), " is no name of a ", what),
         "use 1 to 63 of a-z, 0-9, '-' and '_', a letter first");
  return false;
}

const ConfigNode* TenantsReader::Find(const Mapping& mapping, absl::string_view key) {
  if (mapping.node.kind != Kind::kMapping) return nullptr;
  for (size_t i = 0; i + 1 < mapping.node.items.size(); i += 2) {
    if (mapping.node.items[i].text == key) return &mapping.node.items[i + 1];
  }
  return nullptr;
}

std::optional<int64_t> TenantsReader::ReadNumber(const Mapping& mapping, absl::string_view key,
                                                 int64_t min, int64_t max, bool bytes) {
  const ConfigNode* node = Find(mapping, key);
  if (node == nullptr) return std::nullopt;
  int64_t value = 0;
  const bool number = node->kind == Kind::kScalar && (bytes ? ParseBytes(node->text, value)
                                                            : absl::SimpleAtoi(node->text, &value));
  if (number && value >= min && value <= max) return value;
  Report(
      DiagnosticKind::kConfigValueNotAllowed, *node,
      absl::StrCat(mapping.path, mapping.path.empty() ? "" : ".", key, " is ", DescribeNode(*node),
                   ", not a number", bytes ? " of bytes" : "", " from ", min, " to ", max),
      bytes ? "write bytes, or a number with KiB, MiB or GiB" : "write a whole number");
  return std::nullopt;
}

bool TenantsReader::ReadBool(const Mapping& mapping, absl::string_view key) {
  const ConfigNode* node = Find(mapping, key);
  if (node == nullptr) return false;
  const bool is_scalar = node->kind == Kind::kScalar;
  if (is_scalar && node->text == "true") return true;
  if (is_scalar && node->text == "false") return false;
  Report(DiagnosticKind::kConfigWrongType, *node,
         absl::StrCat(mapping.path, ".", key, " is ", DescribeNode(*node), ", not true or false"),
         "write true or false");
  return false;
}

std::vector<const ConfigNode*> TenantsReader::ReadTexts(const Mapping& mapping,
                                                        absl::string_view key) {
  const ConfigNode* node = Find(mapping, key);
  if (node == nullptr) return {};
  std::vector<const ConfigNode*> texts;
  if (node->kind == Kind::kScalar) texts.push_back(node);
  bool good = node->kind == Kind::kScalar || node->kind == Kind::kSequence;
  if (node->kind == Kind::kSequence) {
    good = !node->items.empty();
    for (const ConfigNode& item : node->items) {
      if (item.kind == Kind::kScalar) {
        texts.push_back(&item);
      } else {
        good = false;
      }
    }
  }
  if (good) return texts;
  Report(DiagnosticKind::kConfigWrongType, *node,
         absl::StrCat(mapping.path, ".", key, " is ", DescribeNode(*node),
                      ", not a text or a list of texts"),
         absl::StrCat("write ", key, ": [...]"));
  return texts;
}

void TenantsReader::Report(DiagnosticKind kind, const ConfigNode& at, std::string message,
                           std::string fix) {
  diagnostics_.Add({.kind = kind,
                    .message = std::move(message),
                    .file = name_,
                    .line = at.line,
                    .column = at.column,
                    .fix = std::move(fix)});
}

}  // namespace npuc::auth
