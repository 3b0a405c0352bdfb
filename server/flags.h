#ifndef NPUC_SERVER_FLAGS_H_
#define NPUC_SERVER_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/objects/location.h"
#include "server/oidc/settings.h"
#include "server/worker/sandbox.h"

namespace npuc::daemon {

// npucd's command line.
struct Flags {
  std::string data_dir;
  std::string listen = "127.0.0.1:8470";
  std::string http;  // HOST:PORT; empty: no HTTP
  std::string web;   // HOST:PORT; empty: no HTTP API and no dashboard
  bool insecure = false;
  std::string tls_cert;  // PEM files; empty: no TLS
  std::string tls_key;
  std::string client_ca;
  std::string tenants;  // empty: everybody is the local admin
  bool shared_cache = false;
  int workers = 0;             // >= 1 after ParseFlags
  int spares = -1;             // worker processes kept ready; >= 0 after ParseFlags
  int work_nice = 5;           // how much compiles give way to answers; 0 to 19
  int max_queued = 100000;     // jobs that wait, of all tenants
  int max_streams = 20000;     // watch streams, of all clients
  int max_connections = 4096;  // by gRPC, of all clients
  int disk_reserve_mib = 256;  // not ready below
  int blob_mib = 40960;        // uploads kept, of all tenants
  // Uploads kept of a tenant whose quota does not say; >= 1 after ParseFlags: a quarter of
  // blob_mib, or all of it where there is one tenant.
  int tenant_blob_mib = 0;
  int tenant_uploads = 64;        // uploads under way, of one tenant
  int session_hours = 12;         // from a sign-in on the page to its end
  int address_call_rate = 0;      // calls a second of a client address; 0: no bound
  int upload_idle_seconds = 300;  // without a byte an upload ends after this
  int memory_mib = 0;             // no new work close to it; 0: no limit
  int canary_seconds = 300;       // between two canary compiles
  int stop_seconds = 25;          // from SIGTERM to the end of the process, at most
  // On a host that lacks a wall of the workers: refuse to start, or say so and go on. Default:
  // kRequire where others are served, kBestEffort with --insecure.
  std::optional<worker::SandboxMode> sandbox;  // set after ParseFlags
  // Limits for all workers together: refuse to start without, say so and go on, or do not try.
  enum class Cgroup : uint8_t { kAuto, kRequire, kOff };
  Cgroup cgroup = Cgroup::kAuto;
  std::string cluster;                // URL of a PostgreSQL that daemons share; empty: none
  std::string cluster_secret_file;    // its password; empty: as libpq finds one
  bool cluster_pooler = false;        // it is behind a pooler in transaction mode
  std::string node_name;              // among the daemons of a cluster; empty: made once
  int cluster_content_mib = 51200;    // uploads and results that a cluster keeps
  objects::Location cluster_content;  // where they are put
  std::string cluster_content_credentials_file;  // of S3
  std::string cluster_content_ca_file;           // authorities that may sign its certificate
  int feature_wait_hours = 24;       // the feature level rises so long after all nodes know it
  int node_ttl_seconds = 10;         // a node that is silent for so long is dead to the others
  oidc::Settings oidc;               // the provider of sign-ins; no issuer: none
  std::string oidc_secret_file;      // the client's secret; empty: a public client
  std::string audit_syslog;          // socket of a syslog that gets the audit log, too; empty: none
  std::string otlp_endpoint;         // URL of a collector for traces; empty: none
  std::string otlp_headers_file;     // lines NAME: VALUE, sent with each request to it
  std::string otlp_ca_file;          // PEM: the authorities of its certificate; empty: the system's
  double otlp_sampling_ratio = 1.0;  // of the jobs whose client brings no trace; 0 to 1
  std::string port_file;
  bool help = false;
  bool version = false;
  bool new_token = false;
  bool migrate = false;  // make or upgrade the tables of --cluster, and end
  // Instead of serving (backup/backup.h). Empty: serve.
  std::string backup;         // write a backup of data_dir into this folder
  std::string restore;        // fill data_dir from the backup in this folder
  std::string check;          // read everything of this data directory, and mend it
  bool check_config = false;  // say whether these flags and the tenants file would do

  bool has_data_task() const { return !backup.empty() || !restore.empty() || !check.empty(); }
  bool serves() const {
    return !help && !version && !new_token && !migrate && !check_config && !has_data_task();
  }
};

// `--name value` or `--name=value`, and `name: value` in the YAML file that --config names, which
// the command line overrides. INVALID_ARGUMENT names all that is wrong, a line each, with the
// file's line where it stands there; no option is silently ignored. Where the result serves(), it
// can be served: --data-dir is given; and either --insecure and loopback addresses, or a
// certificate with its key and a tenants file.
absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv);

std::string FlagsHelp();

inline constexpr size_t kMaxFlagsFileBytes = size_t{1} << 16;

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_FLAGS_H_
