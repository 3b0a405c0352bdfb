#include "server/pg/schema.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/pg/schema_sql.h"

namespace npuc::pg {
namespace {

constexpr absl::Duration kReadLimit = absl::Seconds(5);
constexpr absl::Duration kMigrateLimit = absl::Minutes(5);

// For sessions of a pooler, in which npucd sets nothing.
constexpr char kRoleSettings[] =
    "DO $$ BEGIN "
    "EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = npuc', current_user, "
    "current_database()); "
    "EXECUTE format('ALTER ROLE %I IN DATABASE %I SET jit = off', current_user, "
    "current_database()); "
    "END $$;";

// 0: there is no schema.
absl::StatusOr<int64_t> ReadVersion(Connection& connection) {
  ASSIGN_OR_RETURN(
      const Rows found,
      connection.Run("SELECT to_regclass('npuc.cluster') IS NOT NULL", {}, kReadLimit));
  if (!found.Bool(0, 0)) return 0;
  ASSIGN_OR_RETURN(const Rows version,
                   connection.Run("SELECT schema_version FROM npuc.cluster", {}, kReadLimit));
  return version.empty() ? 0 : version.Int(0, 0);
}

absl::Status IsNewer(int64_t version) {
  return absl::FailedPreconditionError(
      absl::StrCat("PostgreSQL: the tables of npucd have version ", version, ", this npucd knows ",
                   kSchemaVersion, "; start the npucd that made them, or a newer one"));
}

}  // namespace

absl::Status Migrate(const ConnectionOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection, Connection::Open(options));
  // The session has the lock, and ends here. A second migration waits, and then finds all done.
  RETURN_IF_ERROR(
      connection
          ->Run("SELECT pg_advisory_lock(hashtextextended('npuc migrate', 0))", {}, kMigrateLimit)
          .status());
  ASSIGN_OR_RETURN(const int64_t version, ReadVersion(*connection));
  if (version > kSchemaVersion) return IsNewer(version);
  std::string script = "SET lock_timeout = '10s';\nCREATE SCHEMA IF NOT EXISTS npuc;\n";
  if (version == 0) {
    absl::StrAppend(&script, kTablesSql, "INSERT INTO cluster (schema_version) VALUES (1);\n");
  }
  for (int64_t next = std::max<int64_t>(version, 1); next < kSchemaVersion; ++next) {
    absl::StrAppend(&script, kUpgradesSql[next - 1],
                    "UPDATE cluster SET schema_version = ", next + 1, ";\n");
  }
  return connection->RunScript(absl::StrCat(script, kFunctionsSql, kRoleSettings), kMigrateLimit);
}

absl::Status CheckRole(Connection& connection) {
  ASSIGN_OR_RETURN(const Rows rows,
                   connection.Run("SELECT current_setting('search_path') = 'npuc' AND "
                                  "current_setting('jit') = 'off', current_user::text, "
                                  "current_database()::text",
                                  {}, kReadLimit));
  if (rows.Bool(0, 0)) return absl::OkStatus();
  const std::string alter = absl::StrCat("ALTER ROLE \"", rows.Text(0, 1), "\" IN DATABASE \"",
                                         rows.Text(0, 2), "\" SET ");
  return absl::FailedPreconditionError(absl::StrCat(
      "PostgreSQL: --cluster-pooler needs settings of the role: run npucd --migrate as it, without "
      "the pooler, or ",
      alter, "search_path = npuc and ", alter, "jit = off; then RECONNECT in the pooler"));
}

absl::Status CheckSchema(Connection& connection) {
  ASSIGN_OR_RETURN(const int64_t version, ReadVersion(connection));
  if (version > kSchemaVersion) {
    ASSIGN_OR_RETURN(const Rows oldest,
                     connection.Run("SELECT min_node_version FROM npuc.cluster", {}, kReadLimit));
    if (oldest.Int(0, 0) > kSchemaVersion) return IsNewer(version);
  }
  if (version < kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("PostgreSQL: the database has ",
                     version == 0 ? std::string("no tables of npucd")
                                  : absl::StrCat("tables of version ", version),
                     "; run npucd --migrate with the same --cluster once"));
  }
  for (const char* setting : {"fsync", "full_page_writes", "synchronous_commit"}) {
    ASSIGN_OR_RETURN(const Rows value, connection.Run("SELECT current_setting($1)",
                                                      {absl::string_view(setting)}, kReadLimit));
    if (value.Text(0, 0) != "off") continue;
    return absl::FailedPreconditionError(
        absl::StrCat("PostgreSQL: ", setting,
                     " is off, so a crash of the server loses jobs that "
                     "npucd has accepted; turn it on"));
  }
  return absl::OkStatus();
}

bool HasStandby(Connection& connection) {
  const absl::StatusOr<Rows> names =
      connection.Run("SELECT current_setting('synchronous_standby_names')", {}, kReadLimit);
  return names.ok() && !names->Text(0, 0).empty();
}

}  // namespace npuc::pg
