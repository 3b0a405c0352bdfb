#include "server/executor/config_memo.h"

#include "compiler_core/base/status.h"

namespace npuc {

ConfigMemo::ConfigMemo(ConfigParser parse, size_t max_bytes)
    : parse_(std::move(parse)), max_bytes_(max_bytes) {}

absl::StatusOr<ParsedConfig> ConfigMemo::Parse(absl::string_view text, absl::string_view name,
                                               Diagnostics& diagnostics) {
  Key key{std::string(text), std::string(name)};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      by_use_.splice(by_use_.end(), by_use_, found->second.use);
      return found->second.config;
    }
  }
  Diagnostics own;
  absl::StatusOr<ParsedConfig> config = parse_(text, name, own);
  if (!config.ok() || !own.list().empty() || BytesOf(key) > max_bytes_) {
    diagnostics.Append(own);
    return config;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, is_new] = entries_.try_emplace(std::move(key), Entry{*config, {}});
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

size_t ConfigMemo::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

}  // namespace npuc
