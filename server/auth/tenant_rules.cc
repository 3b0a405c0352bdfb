#include "server/auth/tenant_rules.h"

namespace npuc::auth {

Tenant TenantRules::Find(absl::string_view name) const {
  const auto directory = authenticator_->directory();
  const Tenant* const found = directory->Find(name);
  Tenant tenant = found != nullptr ? *found : Tenant{.name = std::string(name)};
  return limits_ != nullptr ? limits_->Apply(std::move(tenant)) : tenant;
}

TenantQuota TenantRules::QuotaOf(absl::string_view tenant) const { return Find(tenant).quota; }

int32_t TenantRules::WeightOf(absl::string_view tenant) const { return Find(tenant).weight; }

uint64_t TenantRules::StoredBytesOf(absl::string_view tenant) const {
  const std::optional<int64_t> limit = QuotaOf(tenant).stored_bytes;
  return limit.has_value() ? static_cast<uint64_t>(*limit) : options_.default_stored_bytes;
}

uint64_t TenantRules::ResultBytesOf(absl::string_view scope) const {
  const std::optional<int64_t> limit = QuotaOf(scope).result_bytes;
  return limit.has_value() ? static_cast<uint64_t>(*limit) : kNoLimit;
}

std::string TenantRules::ResultScopeOf(absl::string_view tenant) const {
  const bool shares = options_.shared_cache && Find(tenant).shared_cache;
  return shares ? kSharedScope : std::string(tenant);
}

}  // namespace npuc::auth
