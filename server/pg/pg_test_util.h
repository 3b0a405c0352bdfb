#ifndef NPUC_SERVER_PG_PG_TEST_UTIL_H_
#define NPUC_SERVER_PG_PG_TEST_UTIL_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "server/pg/connection.h"

namespace npuc::pg {

// A PostgreSQL server for the tests of one program, on a socket in a folder of its own, started as
// an unprivileged user. It ends with the program, however that ends.
class TestServer {
 public:
  // The program's server, started by the first call. nullptr: PostgreSQL is not installed; the test
  // is skipped (NPUC_SKIP_WITHOUT_POSTGRES).
  static TestServer* Get();
  ~TestServer();

  // A database with npucd's tables that nobody else has.
  ConnectionOptions NewDatabase();
  ConnectionOptions OptionsOf(const std::string& database) const;
  // As a crash of the server.
  void Kill();
  void Start();

 private:
  TestServer() = default;
  bool Init();

  std::string bin_;
  std::string folder_;
  pid_t pid_ = 0;
  int databases_ = 0;
};

#define NPUC_SKIP_WITHOUT_POSTGRES() \
  if (::npuc::pg::TestServer::Get() == nullptr) GTEST_SKIP() << "PostgreSQL is not installed"

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_PG_TEST_UTIL_H_
