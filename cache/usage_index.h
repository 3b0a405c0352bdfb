#ifndef NPUC_CACHE_USAGE_INDEX_H_
#define NPUC_CACHE_USAGE_INDEX_H_

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc::cache {

// Sizes, owners and order of use of a store's entries, and which of them must stay: everything
// that decides what a full store evicts. Pure: it touches no disk and asks for no time. Not
// thread-safe.
class UsageIndex {
 public:
  struct Key {
    std::string scope;
    std::string name;  // unique in the scope
    friend bool operator==(const Key&, const Key&) = default;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // Adds an entry as the most recently used one, or gives the one that is there another size and
  // leaves its place.
  void Put(const Key& key, uint64_t bytes);
  // The entry's pins stay: what is put under the key again is pinned.
  void Remove(const Key& key);
  // Makes the entry the most recently used one.
  void Use(const Key& key);

  // A pinned entry is never the oldest. Pins are counted, also where the entry is not there.
  void Pin(const Key& key);
  void Unpin(const Key& key);
  bool IsPinned(const Key& key) const { return pins_.contains(key); }

  struct Totals {
    uint64_t bytes = 0;
    uint64_t pinned_bytes = 0;  // of `bytes`
  };
  size_t size() const { return entries_.size(); }
  const Totals& all() const { return all_; }
  Totals OfScope(absl::string_view scope) const;

  // The least recently used entry that is neither pinned nor `keep`, of all or of one scope.
  // Takes time for each pinned entry that was used before it.
  std::optional<Key> Oldest(const Key* keep = nullptr) const;
  std::optional<Key> OldestOfScope(absl::string_view scope, const Key* keep = nullptr) const;

 private:
  using Order = std::list<const Key*>;  // least recently used first; the keys of entries_
  struct Entry {
    uint64_t bytes = 0;
    Order::iterator in_all;
    Order::iterator in_scope;
  };
  struct Scope {
    Totals totals;
    Order order;
  };

  std::optional<Key> FirstOf(const Order& order, const Key* keep) const;
  // Adds to (or, by a number that wraps, takes from) all totals of an entry.
  void AddBytes(Scope& scope, uint64_t bytes, bool is_pinned);

  std::map<Key, Entry> entries_;
  std::map<std::string, Scope, std::less<>> scopes_;  // those with entries
  std::map<Key, int> pins_;
  Order order_;
  Totals all_;
};

}  // namespace npuc::cache

#endif  // NPUC_CACHE_USAGE_INDEX_H_
