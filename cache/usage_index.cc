#include "cache/usage_index.h"

#include "compiler_core/base/status.h"

namespace npuc::cache {

void UsageIndex::AddBytes(Scope& scope, uint64_t bytes, bool is_pinned) {
  for (Totals* totals : {&all_, &scope.totals}) {
    totals->bytes += bytes;
    if (is_pinned) totals->pinned_bytes += bytes;
  }
}

void UsageIndex::Put(const Key& key, uint64_t bytes) {
  Scope& scope = scopes_[key.scope];
  const auto [it, is_new] = entries_.try_emplace(key);
  Entry& entry = it->second;
  if (is_new) {
    entry.in_all = order_.insert(order_.end(), &it->first);
    entry.in_scope = scope.order.insert(scope.order.end(), &it->first);
  }
  AddBytes(scope, bytes - entry.bytes, IsPinned(key));
  entry.bytes = bytes;
}

void UsageIndex::Remove(const Key& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  const auto scope = scopes_.find(it->first.scope);
  AddBytes(scope->second, 0 - it->second.bytes, IsPinned(it->first));
  order_.erase(it->second.in_all);
  scope->second.order.erase(it->second.in_scope);
  entries_.erase(it);
  if (scope->second.order.empty()) scopes_.erase(scope);
}

void UsageIndex::Use(const Key& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  order_.splice(order_.end(), order_, it->second.in_all);
  Order& in_scope = scopes_.find(key.scope)->second.order;
  in_scope.splice(in_scope.end(), in_scope, it->second.in_scope);
}

void UsageIndex::Pin(const Key& key) {
  if (pins_[key]++ > 0) return;
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  all_.pinned_bytes += it->second.bytes;
  scopes_.find(key.scope)->second.totals.pinned_bytes += it->second.bytes;
}

void UsageIndex::Unpin(const Key& key) {
  const auto pin = pins_.find(key);
  NPUC_CHECK(pin != pins_.end());
  if (--pin->second > 0) return;
  pins_.erase(pin);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  all_.pinned_bytes -= it->second.bytes;
  scopes_.find(key.scope)->second.totals.pinned_bytes -= it->second.bytes;
}

UsageIndex::Totals UsageIndex::OfScope(absl::string_view scope) const {
  const auto it = scopes_.find(scope);
  return it == scopes_.end() ? Totals{} : it->second.totals;
}

std::optional<UsageIndex::Key> UsageIndex::FirstOf(const Order& order, const Key* keep) const {
  for (const Key* key : order) {
    if (!IsPinned(*key) && (keep == nullptr || *key != *keep)) return *key;
  }
  return std::nullopt;
}

std::optional<UsageIndex::Key> UsageIndex::Oldest(const Key* keep) const {
  return FirstOf(order_, keep);
}

std::optional<UsageIndex::Key> UsageIndex::OldestOfScope(absl::string_view scope,
                                                         const Key* keep) const {
  const auto it = scopes_.find(scope);
  return it == scopes_.end() ? std::nullopt : FirstOf(it->second.order, keep);
}

}  // namespace npuc::cache
