#ifndef NPUC_CACHE_ROCKSDB_LOG_H_
#define NPUC_CACHE_ROCKSDB_LOG_H_

#include <memory>

namespace rocksdb {
class Logger;
}

namespace npuc::cache {

// For info_log: RocksDB's own text log, kept nowhere. Debian's RocksDB has its assertions, and one
// of them ends the process at the first line of that log behind one that found the disk full. What
// matters of it comes as statuses.
std::shared_ptr<rocksdb::Logger> NoRocksDbLog();

}  // namespace npuc::cache

#endif  // NPUC_CACHE_ROCKSDB_LOG_H_
