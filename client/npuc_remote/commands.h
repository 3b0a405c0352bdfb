#ifndef NPUC_CLIENT_NPUC_REMOTE_COMMANDS_H_
#define NPUC_CLIENT_NPUC_REMOTE_COMMANDS_H_

#include <string>
#include <vector>

#include "client/lib/client.h"
#include "client/npuc_remote/console.h"
#include "client/npuc_remote/options.h"

namespace npuc::remote {

// The whole program but its signals: parses `arguments` (without the program's name), runs the
// command, returns the exit code.
ExitCode RunNpucRemote(const std::vector<std::string>& arguments, Console& console);

// The commands. Each writes to the console and returns the exit code.
ExitCode RunCompile(client::Client& client, const Options& options,
                    Console& console);  // submit too
ExitCode RunWatch(client::Client& client, const Options& options, Console& console);
ExitCode RunLogs(client::Client& client, const Options& options, Console& console);
ExitCode RunRetry(client::Client& client, const Options& options, Console& console);
ExitCode RunStatus(client::Client& client, const Options& options, Console& console);
ExitCode RunList(client::Client& client, const Options& options, Console& console);
ExitCode RunCancel(client::Client& client, const Options& options, Console& console);
ExitCode RunFetch(client::Client& client, const Options& options, Console& console);
ExitCode RunAdmin(client::Client& client, const Options& options, Console& console);
ExitCode RunUsage(client::Client& client, const Options& options, Console& console);
ExitCode RunQuota(client::Client& client, const Options& options, Console& console);
ExitCode RunInspect(client::Client& client, const Options& options, Console& console);
ExitCode RunServer(client::Client& client, const Options& options, Console& console);
ExitCode RunWhoami(client::Client& client, const Options& options, Console& console);
ExitCode RunHealth(client::Client& client, const Options& options, Console& console);
ExitCode RunCores(client::Client& client, const Options& options, Console& console);
ExitCode RunOps(client::Client& client, const Options& options, Console& console);

// Shared by compile, watch and fetch.
// Makes `folder` where it is missing, and sees whether files can be put there; errors go to the
// console.
bool PrepareFolder(const std::string& folder, Console& console);
// Fetches and says so. kDone, or the code of the failure, which was shown. Where `lost` is given,
// artifacts that the server has lost are not shown as a failure, but set it.
ExitCode FetchArtifacts(client::Client& client, const v1::CompileJob& job,
                        absl::Span<const v1::Artifact> artifacts, const std::string& folder,
                        const Options& options, Console& console, bool* lost = nullptr);
// Aligned columns, the first row being the heading.
void PrintTable(const std::vector<std::vector<std::string>>& rows, Console& console);
// Diagnostics first, then the verdict, on standard error. For a job that has ended.
void ShowEnd(const v1::CompileJob& job, Console& console);

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_COMMANDS_H_
