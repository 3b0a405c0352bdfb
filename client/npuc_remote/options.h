#ifndef NPUC_CLIENT_NPUC_REMOTE_OPTIONS_H_
#define NPUC_CLIENT_NPUC_REMOTE_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/npuc_remote/exit_codes.h"
#include "npuc/v1/admin.pb.h"
#include "npuc/v1/compile.pb.h"

namespace npuc::remote {

enum class Command {
  kCompile,
  kSubmit,
  kWatch,
  kStatus,
  kList,
  kCancel,
  kFetch,
  kLogs,
  kRetry,
  kInspect,
  kAdmin,
  kUsage,
  kQuota,
  kConfig,
  kServer,
  kWhoami,
  kHealth,
  kCores,
  kOps,
  kCompletion,
  kMan,
};

// The command line, checked. Each command reads its own part.
struct Options {
  Command command = Command::kServer;
  // Of every command.
  std::string server;
  std::string token_file;
  std::string token;        // of the environment
  std::string traceparent;  // likewise
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  bool tls = false;
  bool json = false;
  bool quiet = false;
  absl::Duration patience = absl::Seconds(60);  // for a server that went away
  // compile, submit
  std::vector<std::string> configs;  // at least one; files or folders
  int jobs = 64;                     // of many configs, on the server at a time
  int priority = 0;
  std::optional<absl::Duration> timeout;
  bool no_cache = false;
  bool detach = false;
  std::map<std::string, std::string> labels;
  // compile, fetch
  std::optional<std::string> output_folder;
  // watch, logs, status, cancel, retry, fetch
  std::string job;
  int64_t from_seq = 1;
  std::string reason;
  std::vector<std::string> names;
  // list, admin
  v1::ListCompileJobsRequest filter;
  // list, admin
  int limit = 50;
  // usage
  v1::GetUsageRequest usage;
  bool csv = false;
  // admin, with the filter of list and the reason of cancel
  std::string admin_action;            // one of kAdminActions
  bool all = false;                    // cancel, requeue and drop-uploads may go without a filter
  std::optional<absl::Duration> span;  // limit: for how long; drop-uploads: idle for so long
  std::optional<absl::Duration> grace;
  v1::TenantLimits limits;
  std::string identity;
  v1::ListAuditEntriesRequest audit;  // beside tenant, identity and time, which other fields have
  std::string blob;
  std::string result;
  // inspect
  std::string model;
  std::map<std::string, std::string> side_inputs;  // by config key
  std::vector<std::string> input_shapes;
  std::vector<std::string> dims;
  std::vector<std::string> constants;
  // inspect, ops
  std::string core;
  // ops
  std::string framework;
  // completion
  std::string shell;
};

struct Parsed {
  std::optional<Options> options;  // not set: help was printed, or usage is wrong
  ExitCode exit_code = kDone;      // where options is not set
};

// Parses the arguments behind the program's name. Help goes to out, what is wrong to err. What of
// the connection is not given comes later (FillConnection).
Parsed ParseCommandLine(const std::vector<std::string>& arguments, std::ostream& out,
                        std::ostream& err);

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_OPTIONS_H_
