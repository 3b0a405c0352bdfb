#ifndef NPUC_SERVER_PG_SCHEMA_H_
#define NPUC_SERVER_PG_SCHEMA_H_

#include <string>

#include "absl/status/status.h"
#include "server/pg/connection.h"

namespace npuc::pg {

// The version of tables and functions that this build makes and uses.
inline constexpr int kSchemaVersion = 11;

// Makes the tables and functions in the schema `npuc` of a database, or brings older ones up to
// kSchemaVersion; nothing where they have it. Two at once do no harm. FAILED_PRECONDITION: a newer
// build made them.
absl::Status Migrate(const ConnectionOptions& options);

// FAILED_PRECONDITION, with what to do: no schema, an older one, a newer one that takes no node of
// this version (cluster.min_node_version), or a server that is set to lose commits (fsync,
// full_page_writes or synchronous_commit is off).
absl::Status CheckSchema(Connection& connection);

// FAILED_PRECONDITION, with what to do: sessions of a pooler lack the settings that Migrate gives
// the role.
absl::Status CheckRole(Connection& connection);

// True: a commit waits for another server (synchronous_standby_names). Without one, the loss of the
// server's disk is the loss of its jobs.
bool HasStandby(Connection& connection);

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_SCHEMA_H_
