#ifndef NPUC_SERVER_EXECUTOR_CONFIG_MEMO_H_
#define NPUC_SERVER_EXECUTOR_CONFIG_MEMO_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "compiler_core/base/mutex.h"
#include "server/executor/submission.h"

namespace npuc::executor {

// Remembers what good configs were read as, since a farm submits few configs again and again, and
// reading one takes longer than all else about a cache hit. Bounded by the bytes of their texts,
// the least recently used going first. Configs with any diagnostic are read each time. Thread-safe.
class ConfigMemo {
 public:
  // `parse` must give equal results for equal texts and names.
  ConfigMemo(ConfigParser parse, size_t max_bytes);

  absl::StatusOr<ParsedConfig> Parse(absl::string_view text, absl::string_view name,
                                     Diagnostics& diagnostics);

  size_t bytes() const;

 private:
  using Key = std::pair<std::string, std::string>;  // text, name
  struct Entry {
    std::shared_ptr<const ParsedConfig> config;
    std::list<const Key*>::iterator use;
  };
  // The remembered config; null: none.
  std::shared_ptr<const ParsedConfig> Recall(absl::string_view text, absl::string_view name);
  static size_t BytesOf(const Key& key) { return key.first.size() + key.second.size(); }

  const ConfigParser parse_;
  const size_t max_bytes_;
  mutable Mutex mutex_;
  // Finds by views, so that a look copies no text.
  struct Less {
    using is_transparent = void;
    template <typename Left, typename Right>
    bool operator()(const Left& left, const Right& right) const {
      const int order = absl::string_view(left.first).compare(right.first);
      return order != 0 ? order < 0 : absl::string_view(left.second) < right.second;
    }
  };
  std::map<Key, Entry, Less> entries_ NPUC_GUARDED_BY(mutex_);
  std::list<const Key*> by_use_ NPUC_GUARDED_BY(mutex_);  // least recently used first
  size_t bytes_ NPUC_GUARDED_BY(mutex_) = 0;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_CONFIG_MEMO_H_
