#include "server/executor/config_memo.h"

#include "compiler_core/base/status.h"

namespace npuc::executor {

ConfigMemo::ConfigMemo(ConfigParser parse, size_t max_bytes)
    : parse_(std::move(parse)), max_bytes_(max_bytes) {}

absl::StatusOr<ParsedConfig> ConfigMemo::Parse(absl::string_view text, absl::string_view name,
                                               Diagnostics& diagnostics) {
  if (const auto known = Recall(text, name)) return *known;
  Key key{std::string(text), std::string(name)};
  Diagnostics own;
  absl::StatusOr<ParsedConfig> config = parse_(text, name, own);
  if (!config.ok() || !own.list().empty() || BytesOf(key) > max_bytes_) {
    diagnostics.Append(own);
    return config;
  }
  const MutexLock lock(mutex_);
  const auto [it, is_new] = entries_.try_emplace(
      std::move(key), Entry{std::make_shared<const ParsedConfig>(*config), {}});
  if (!is_new) return config;
  it->second.use = by_use_.insert(by_use_.end(), &it->first);
  bytes_ += BytesOf(it->first);
  while (bytes_ > max_bytes_) {
    const auto oldest = entries_.find(*by_use_.front());
    bytes_ -= BytesOf(oldest->first);
    by_use_.pop_front();
    entries_.erase(oldest);
  }
  return config;
}

std::shared_ptr<const ParsedConfig> ConfigMemo::Recall(absl::string_view text,
                                                       absl::string_view name) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(std::pair(text, name));
  if (found == entries_.end()) return nullptr;
  by_use_.splice(by_use_.end(), by_use_, found->second.use);
  return found->second.config;
}

size_t ConfigMemo::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace npuc::executor
