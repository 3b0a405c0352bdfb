#ifndef NPUC_SERVER_API_DEPENDENCIES_H_
#define NPUC_SERVER_API_DEPENDENCIES_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/api/open_connections.h"
#include "server/auth/authenticator.h"
#include "server/auth/sessions.h"
#include "server/executor/inspections.h"
#include "server/executor/lifecycle.h"
#include "server/executor/submission.h"
#include "server/executor/transfers.h"
#include "server/jobs/job_index.h"
#include "server/jobs/job_service.h"
#include "server/log/log.h"
#include "server/observe/metrics.h"
#include "server/observe/readiness.h"
#include "server/observe/tracer.h"
#include "server/observe/watchdog.h"

namespace npuc::log {
class AuditLog;
}  // namespace npuc::log

namespace npuc::oidc {
class SignInFlow;
}  // namespace npuc::oidc

namespace npuc::api {

struct AdminControls;  // server/api/admin.h

// What GetServerInfo tells beside the counts.
struct ServerFacts {
  std::string version;
  std::string compiler_build_id;
  std::string node;  // its name among the daemons of a cluster
  int32_t workers = 0;
  int64_t max_blob_bytes = 0;
  int64_t max_queued_jobs = 0;
  absl::Duration default_timeout;
};

// What the calls stand on, whether they come by gRPC or by HTTP; all must outlive the servers.
struct ApiDependencies {
  const auth::Authenticator* authenticator = nullptr;
  auth::Sessions* sessions = nullptr;    // of the page; null: nobody can sign in there
  oidc::SignInFlow* sign_ins = nullptr;  // by a provider; null: there is none
  jobs::JobService* jobs = nullptr;
  jobs::JobIndex* index = nullptr;
  executor::Submission* submission = nullptr;
  executor::Inspections* inspections = nullptr;
  executor::Uploads* uploads = nullptr;
  executor::Downloads* downloads = nullptr;
  const executor::Lifecycle* lifecycle = nullptr;
  const log::Logger* log = nullptr;
  const observe::Readiness* readiness = nullptr;
  observe::Metrics* metrics = nullptr;   // may be null
  observe::Tracer* tracer = nullptr;     // may be null
  log::AuditLog* audit = nullptr;        // may be null
  const AdminControls* admin = nullptr;  // may be null: then nobody may what it does
  OpenConnections* connections = nullptr;
  OpenStreams* streams = nullptr;
  observe::Watchdog* watchdog = nullptr;  // sees a pool whose threads are all stuck; may be null
  ServerFacts facts;
};

// PEM files; all empty: no encryption.
struct TlsFiles {
  std::string certificate;  // the server's, then those between it and its authority
  std::string key;
  std::string client_ca;  // who may sign clients' certificates; empty: none is asked for
};

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_DEPENDENCIES_H_
