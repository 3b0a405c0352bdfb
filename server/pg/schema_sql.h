#ifndef NPUC_SERVER_PG_SCHEMA_SQL_H_
#define NPUC_SERVER_PG_SCHEMA_SQL_H_

#include "server/pg/schema.h"

// The .sql files of this folder, which CMakeLists.txt puts into schema_sql.cc.
namespace npuc::pg {

extern const char kTablesSql[];                             // tables.sql: version 1
extern const char* const kUpgradesSql[kSchemaVersion - 1];  // tables_2.sql and so on
extern const char kFunctionsSql[];                          // all of *functions.sql

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_SCHEMA_SQL_H_
