#include "cache/rocksdb_log.h"

#include <cstdarg>

#include "rocksdb/env.h"

namespace npuc::cache {
namespace {

class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {}
};

}  // namespace

std::shared_ptr<rocksdb::Logger> NoRocksDbLog() { return std::make_shared<NoLog>(); }

}  // namespace npuc::cache
