#include "cache/usage_index.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace npuc::cache {
namespace {

using Key = UsageIndex::Key;

TEST(UsageIndex, TheLeastRecentlyUsedIsTheOldest) {
  UsageIndex index;
  EXPECT_EQ(index.Oldest(), std::nullopt);
  index.Put({"a", "1"}, 10);
  index.Put({"b", "1"}, 20);
  index.Put({"a", "2"}, 30);
  EXPECT_EQ(index.Oldest(), (Key{"a", "1"}));
  index.Use({"a", "1"});
  EXPECT_EQ(index.Oldest(), (Key{"b", "1"}));
  EXPECT_EQ(index.OldestOfScope("a"), (Key{"a", "2"}));
  index.Put({"b", "1"}, 25);  // another size, the same place
  EXPECT_EQ(index.Oldest(), (Key{"b", "1"}));
  EXPECT_EQ(index.OldestOfScope("c"), std::nullopt);
  index.Use({"c", "not there"});
  EXPECT_EQ(index.size(), 3u);
}

TEST(UsageIndex, PinnedAndKeptEntriesStay) {
  UsageIndex index;
  const Key first{"a", "1"};
  const Key second{"a", "2"};
  index.Put(first, 10);
  index.Put(second, 20);
  index.Pin(first);
  index.Pin(first);
  EXPECT_EQ(index.Oldest(), second);
  EXPECT_EQ(index.Oldest(&second), std::nullopt);
  EXPECT_EQ(index.all().pinned_bytes, 10u);
  index.Unpin(first);
  EXPECT_TRUE(index.IsPinned(first));
  index.Unpin(first);
  EXPECT_EQ(index.Oldest(), first);
  EXPECT_EQ(index.Oldest(&first), second);
  EXPECT_EQ(index.all().pinned_bytes, 0u);
}

TEST(UsageIndex, APinOutlivesItsEntry) {
  UsageIndex index;
  const Key key{"a", "1"};
  index.Put(key, 10);
  index.Pin(key);
  index.Remove(key);
  EXPECT_EQ(index.all().bytes, 0u);
  EXPECT_EQ(index.all().pinned_bytes, 0u);
  index.Put(key, 30);
  EXPECT_EQ(index.Oldest(), std::nullopt);
  EXPECT_EQ(index.OfScope("a").pinned_bytes, 30u);
  index.Unpin(key);
  EXPECT_EQ(index.OfScope("a").pinned_bytes, 0u);
  EXPECT_EQ(index.OldestOfScope("a"), key);
}

// Against a list that is searched from the front.
struct Model {
  struct Entry {
    Key key;
    uint64_t bytes = 0;
  };
  std::vector<Entry> order;
  std::vector<Key> pins;

  auto Find(const Key& key) {
    return std::find_if(order.begin(), order.end(), [&](const Entry& e) { return e.key == key; });
  }
  bool IsPinned(const Key& key) const {
    return std::find(pins.begin(), pins.end(), key) != pins.end();
  }
  std::optional<Key> Oldest(const std::string& scope, const Key* keep) const {
    for (const Entry& entry : order) {
      const bool counts = scope.empty() || entry.key.scope == scope;
      if (counts && !IsPinned(entry.key) && (keep == nullptr || entry.key != *keep)) {
        return entry.key;
      }
    }
    return std::nullopt;
  }
  UsageIndex::Totals Total(const std::string& scope) const {
    UsageIndex::Totals totals;
    for (const Entry& entry : order) {
      if (!scope.empty() && entry.key.scope != scope) continue;
      totals.bytes += entry.bytes;
      if (IsPinned(entry.key)) totals.pinned_bytes += entry.bytes;
    }
    return totals;
  }
};

void Step(uint32_t action, const Key& key, uint64_t bytes, UsageIndex& index, Model& model) {
  const auto found = model.Find(key);
  if (action < 3) {
    index.Put(key, bytes);
    if (found == model.order.end()) {
      model.order.push_back({key, bytes});
    } else {
      found->bytes = bytes;
    }
  } else if (action == 3) {
    index.Remove(key);
    if (found != model.order.end()) model.order.erase(found);
  } else if (action < 6) {
    index.Use(key);
    if (found != model.order.end()) std::rotate(found, found + 1, model.order.end());
  } else if (action == 6 || !model.IsPinned(key)) {
    index.Pin(key);
    model.pins.push_back(key);
  } else {
    index.Unpin(key);
    model.pins.erase(std::find(model.pins.begin(), model.pins.end(), key));
  }
}

TEST(UsageIndex, AgreesWithASearchedList) {
  std::mt19937 random(11);
  UsageIndex index;
  Model model;
  for (int step = 0; step < 5000; ++step) {
    const Key key{std::string(1, static_cast<char>('a' + random() % 3)),
                  std::to_string(random() % 6)};
    Step(random() % 8, key, random() % 100, index, model);
    ASSERT_EQ(index.size(), model.order.size()) << step;
    for (const std::string scope : {"", "a", "b", "c"}) {
      const UsageIndex::Totals found = scope.empty() ? index.all() : index.OfScope(scope);
      ASSERT_EQ(found.bytes, model.Total(scope).bytes) << step;
      ASSERT_EQ(found.pinned_bytes, model.Total(scope).pinned_bytes) << step;
      for (const Key* keep : {static_cast<const Key*>(nullptr), &key}) {
        ASSERT_EQ(scope.empty() ? index.Oldest(keep) : index.OldestOfScope(scope, keep),
                  model.Oldest(scope, keep))
            << step;
      }
    }
  }
}

}  // namespace
}  // namespace npuc::cache
