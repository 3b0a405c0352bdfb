#include "server/pg/pg_test_util.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "server/pg/schema.h"

namespace npuc::pg {
namespace {

constexpr char kVersions[] = "/usr/lib/postgresql";
constexpr char kTemplate[] = "npuc_template";

// PostgreSQL does not run as root.
std::vector<std::string> Unprivileged(std::vector<std::string> command) {
  if (geteuid() != 0) return command;
  std::vector<std::string> whole = {"setpriv", "--reuid=nobody", "--regid=nogroup",
                                    "--clear-groups", "--pdeathsig=SIGINT"};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

pid_t Spawn(const std::vector<std::string>& command, const std::string& folder) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string log = folder + "/log";
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGINT);
  if (chdir(folder.c_str()) != 0 || freopen(log.c_str(), "a", stdout) == nullptr ||
      dup2(fileno(stdout), STDERR_FILENO) < 0) {
    _exit(126);
  }
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

TestServer* TestServer::Get() {
  static const std::unique_ptr<TestServer> server = [] {
    std::unique_ptr<TestServer> made(new TestServer);
    if (!made->Init()) made.reset();
    return made;
  }();
  return server.get();
}

bool TestServer::Init() {
  std::error_code error;
  std::set<std::string> versions;
  for (const auto& version : std::filesystem::directory_iterator(kVersions, error)) {
    const std::string bin = version.path().string() + "/bin";
    if (std::filesystem::exists(bin + "/initdb")) versions.insert(bin);
  }
  if (versions.empty()) return false;
  bin_ = *versions.rbegin();
  // A socket's path may have 107 bytes.
  std::string pattern = "/tmp/npuc_pg_XXXXXX";
  folder_ = mkdtemp(pattern.data());
  if (geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    NPUC_CHECK(chown(folder_.c_str(), kNobody, kNobody) == 0);
  }
  const pid_t init =
      Spawn(Unprivileged({bin_ + "/initdb", "-D", folder_ + "/data", "-A", "trust", "-U", "npucd",
                          "--no-sync", "--encoding=UTF8", "--locale=C"}),
            folder_);
  int status = 0;
  NPUC_CHECK(waitpid(init, &status, 0) == init && status == 0);
  Start();
  const absl::StatusOr<std::unique_ptr<Connection>> admin = Connection::Open(OptionsOf("postgres"));
  NPUC_CHECK(admin.ok());
  NPUC_CHECK(
      (*admin)->RunScript(absl::StrCat("CREATE DATABASE ", kTemplate), absl::Minutes(1)).ok());
  const absl::Status migrated = Migrate(OptionsOf(kTemplate));
  if (!migrated.ok()) std::fprintf(stderr, "%s\n", migrated.ToString().c_str());
  NPUC_CHECK(migrated.ok());
  return true;
}

void TestServer::Start() {
  // A crash of the process is no crash of the machine: nothing is lost without syncs.
  pid_ = Spawn(Unprivileged({bin_ + "/postgres", "-D", folder_ + "/data", "-k", folder_, "-c",
                             "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"}),
               folder_);
  NPUC_CHECK(pid_ > 0);
  for (int tries = 0; tries < 1000; ++tries) {
    if (Connection::Open(OptionsOf("postgres")).ok()) return;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      // Children of a killed one still leave.
      absl::SleepFor(absl::Milliseconds(100));
      Start();
      return;
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  NPUC_CHECK(false);
}

void TestServer::Kill() {
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
}

TestServer::~TestServer() {
  if (pid_ > 0) {
    kill(pid_, SIGQUIT);
    int status = 0;
    waitpid(pid_, &status, 0);
  }
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

ConnectionOptions TestServer::OptionsOf(const std::string& database) const {
  return {.url = absl::StrCat("host=", folder_, " user=npucd dbname=", database)};
}

ConnectionOptions TestServer::NewDatabase() {
  const std::string name = absl::StrCat("test", ++databases_);
  const absl::StatusOr<std::unique_ptr<Connection>> admin = Connection::Open(OptionsOf("postgres"));
  NPUC_CHECK(admin.ok());
  NPUC_CHECK((*admin)
                 ->RunScript(absl::StrCat("CREATE DATABASE ", name, " TEMPLATE ", kTemplate),
                             absl::Minutes(1))
                 .ok());
  return OptionsOf(name);
}

}  // namespace npuc::pg
