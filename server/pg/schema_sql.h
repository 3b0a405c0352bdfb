#ifndef NPUC_SERVER_PG_SCHEMA_SQL_H_
#define NPUC_SERVER_PG_SCHEMA_SQL_H_

namespace npuc::pg {

extern const char kTablesSql[];     // tables.sql
extern const char kTables2Sql[];    // tables_2.sql
extern const char kTables3Sql[];    // tables_3.sql
extern const char kTables4Sql[];    // tables_4.sql
extern const char kTables5Sql[];    // tables_5.sql
extern const char kFunctionsSql[];  // functions.sql

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_SCHEMA_SQL_H_
