#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/lib/client.h"
#include "client/lib/fake_server.h"
#include "client/npuc_remote/commands.h"
#include "client/npuc_remote/output.h"

namespace npuc::remote {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr char kConfig[] =
    "CORENAME: GRUS\nMODEL_FILE: model.pb\nOUTPUT_FILE: made/model.h\n"
    "INPUT_OPS:\n  x: [1, 4]\nOUTPUT_OPS: [y]\n";

class RemoteTest : public testing::Test {
 protected:
  RemoteTest() {
    folder_ = testing::TempDir() + "remote_test_" + client::NewRequestId();
    fs::create_directories(folder_);
    setenv("NPUC_PROFILE", Path("remote.conf").c_str(), 1);
    Write("config.yaml", kConfig);
    Write("model.pb", "some model");
    server_.Succeed("the header");
  }
  ~RemoteTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  std::string Read(const std::string& name) {
    auto text = client::ReadWholeFile(Path(name), 1 << 20);
    return text.ok() ? *text : text.status().ToString();
  }

  ExitCode Run(std::vector<std::string> arguments, bool terminal = false) {
    out_.str("");
    err_.str("");
    Console console(out_, err_, terminal, [this] { return interrupted_; });
    return RunNpucRemote(arguments, console);
  }
  // With --server; --patience 1 keeps tests of a missing server short.
  ExitCode RunAt(std::vector<std::string> arguments, bool terminal = false) {
    arguments.insert(arguments.begin(), {"--server", server_.address(), "--patience", "1"});
    return Run(std::move(arguments), terminal);
  }

  std::vector<Json> Lines() {
    std::vector<Json> lines;
    std::istringstream stream(out_.str());
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  std::string folder_;
  client::FakeServer server_;
  std::ostringstream out_;
  std::ostringstream err_;
  bool interrupted_ = false;
};

TEST_F(RemoteTest, CompileUploadsFollowsAndFetches) {
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-o", Path("out")}), kDone);
  EXPECT_EQ(Read("out/model.h"), "the header");
  EXPECT_THAT(out_.str(), HasSubstr("reading\nwriting\n"));
  EXPECT_THAT(err_.str(), HasSubstr("j1 SUCCEEDED"));
  EXPECT_EQ(server_.last_create.spec().config_text(), kConfig);
  EXPECT_EQ(server_.last_create.request_id().size(), 32);
}

TEST_F(RemoteTest, ArtifactsGoBesideOutputFile) {
  EXPECT_EQ(RunAt({"compile", Path("config.yaml")}), kDone);
  EXPECT_EQ(Read("made/model.h"), "the header");
}

TEST_F(RemoteTest, JsonOfACompileIsTheJobAlone) {
  server_.outcome.set_cache_hit(true);
  server_.outcome.set_attempts(0);
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-o", Path("out"), "--json"}), kDone);
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0]["job"], "j1");
  EXPECT_EQ(lines[0]["state"], "SUCCEEDED");
  EXPECT_EQ(lines[0]["cache_hit"], true);
  EXPECT_EQ(lines[0]["attempts"], 0);
  EXPECT_EQ(lines[0]["artifacts"][0]["name"], "model.h");
  EXPECT_EQ(lines[0]["artifacts"][0]["size"], 10);
  EXPECT_EQ(lines[0]["artifacts"][0]["sha256"].get<std::string>().size(), 64);
  EXPECT_TRUE(lines[0]["diagnostics"].empty());
  EXPECT_THAT(err_.str(), HasSubstr("reading"));
}

TEST_F(RemoteTest, OptionsTravelWithTheJob) {
  EXPECT_EQ(RunAt({"submit", Path("config.yaml"), "--priority", "-7", "--timeout", "2m",
                   "--no-cache", "--label", "ci=12=3"}),
            kDone);
  EXPECT_EQ(out_.str(), "j1\n");
  const v1::CompileJobSpec& spec = server_.last_create.spec();
  EXPECT_EQ(spec.priority(), -7);
  EXPECT_EQ(spec.timeout().seconds(), 120);
  EXPECT_TRUE(spec.no_cache());
  EXPECT_EQ(spec.labels().at("ci"), "12=3");
}

TEST_F(RemoteTest, ConfigsMayStandBehindALabel) {
  Write("other.yaml", kConfig);
  EXPECT_EQ(RunAt({"submit", "--label", "a=b", Path("config.yaml"), Path("other.yaml")}), kDone);
  EXPECT_EQ(server_.create_calls, 2);
  EXPECT_EQ(server_.last_create.spec().labels().size(), 1);
}

TEST_F(RemoteTest, DetachPrintsTheJobAndFetchesNothing) {
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "--detach"}), kDone);
  EXPECT_EQ(out_.str(), "j1\n");
  EXPECT_FALSE(fs::exists(Path("made")));
}

TEST_F(RemoteTest, AFailedJobShowsItsDiagnosticsFirst) {
  server_.Fail();
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "--json"}), kJobFailed);
  const size_t diagnostic = err_.str().find("node 'conv': stride 9 exceeds 3; use stride <= 3");
  ASSERT_NE(diagnostic, std::string::npos) << err_.str();
  EXPECT_LT(diagnostic, err_.str().find("FAILED: 1 problem(s), see above\n"));
  EXPECT_EQ(diagnostic, err_.str().rfind("node 'conv'")) << "once";
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0]["state"], "FAILED");
  EXPECT_EQ(lines[0]["diagnostics"][0]["id"], "NPUC1201");
  EXPECT_EQ(lines[0]["diagnostics"][0]["node"], "conv");
  EXPECT_EQ(lines[0]["diagnostics"][0]["fix"], "use stride <= 3");
  EXPECT_EQ(lines[0]["diagnostics"][0]["severity"], "error");
  EXPECT_EQ(RunAt({"watch", "j1"}), kJobFailed);
  EXPECT_EQ(RunAt({"fetch", "j1", "-o", Path("out")}), kJobFailed);
  EXPECT_EQ(RunAt({"status", "j1"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("NPUC1201"));
}

TEST_F(RemoteTest, WhatIsWrongWithTheConfigIsSaidWithoutTheServer) {
  Write("bad.yaml", "CORENAME: GRUS\nMODEL_FLIE: x\n");
  EXPECT_EQ(RunAt({"compile", Path("bad.yaml"), "--json"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("bad.yaml:2"));
  EXPECT_EQ(server_.create_calls, 0);
  EXPECT_FALSE(Lines()[0]["diagnostics"].empty());
  fs::remove(Path("model.pb"));
  EXPECT_EQ(RunAt({"compile", Path("config.yaml")}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("config.yaml:2: cannot open"));
  EXPECT_EQ(RunAt({"compile", Path("nothing.yaml")}), kRefused);
}

TEST_F(RemoteTest, ARefusalByTheServerIsShownWhole) {
  server_.script.create_error =
      client::ServiceStatus(grpc::StatusCode::INVALID_ARGUMENT, "1 problem", "INVALID_CONFIG",
                            "config.yaml:1: no such core");
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "--json"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("config.yaml:1: no such core"));
  EXPECT_EQ(Lines()[0]["error"]["reason"], "INVALID_CONFIG");
  server_.script.create_error = client::ServiceStatus(
      grpc::StatusCode::INVALID_ARGUMENT, "spec: no model", "INVALID_FIELD", "no model");
  EXPECT_EQ(RunAt({"submit", Path("config.yaml")}), kRefused);
  EXPECT_THAT(err_.str(), EndsWith("npuc-remote: refused: spec: no model [INVALID_FIELD]\n"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("\nspec: no model")));  // the only problem once
  EXPECT_EQ(RunAt({"status", "j999"}), kRefused);
}

TEST_F(RemoteTest, WatchPrintsNumberedEvents) {
  ASSERT_EQ(RunAt({"submit", Path("config.yaml")}), kDone);
  server_.script.break_watches = 3;
  server_.script.break_watch_after = 1;
  EXPECT_EQ(RunAt({"watch", "j1", "--from", "2", "--json"}), kDone);
  std::vector<int> seqs;
  std::vector<std::string> types;
  for (const Json& line : Lines()) {
    EXPECT_EQ(line["job"], "j1");
    seqs.push_back(line["seq"]);
    types.push_back(line["type"]);
  }
  EXPECT_THAT(seqs, ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(types, ElementsAre("state_changed", "log_line", "log_line", "artifact_ready",
                                 "state_changed"));
}

TEST_F(RemoteTest, CancelledAndExpiredJobsHaveTheirOwnCode) {
  server_.outcome.Clear();
  server_.outcome.mutable_queued();
  ASSERT_EQ(RunAt({"submit", Path("config.yaml")}), kDone);
  EXPECT_EQ(RunAt({"fetch", "j1"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("QUEUED"));
  EXPECT_EQ(RunAt({"cancel", "j1", "--reason", "not needed", "--json"}), kDone);
  EXPECT_EQ(Lines()[0]["state"], "CANCELLED");
  EXPECT_EQ(Lines()[0]["reason"], "not needed");
  EXPECT_EQ(RunAt({"watch", "j1"}), kCancelled);
  server_.outcome.mutable_expired()->set_was(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(RunAt({"compile", Path("config.yaml")}), kCancelled);
}

TEST_F(RemoteTest, AnInterruptSaysHowToComeBack) {
  ASSERT_EQ(RunAt({"submit", Path("config.yaml")}), kDone);
  interrupted_ = true;
  EXPECT_EQ(RunAt({"watch", "j1"}), kInterrupted);
  EXPECT_THAT(err_.str(), HasSubstr("npuc-remote watch j1"));
  EXPECT_THAT(err_.str(), HasSubstr("npuc-remote fetch j1"));
}

TEST_F(RemoteTest, AServerThatIsGone) {
  server_.Stop();
  EXPECT_EQ(RunAt({"server"}), kUnreachable);
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "--json"}), kUnreachable);
  EXPECT_EQ(Lines()[0]["error"]["exit_code"], 4);
}

TEST_F(RemoteTest, AServerWithoutTlsCalledWithIt) {
  EXPECT_EQ(RunAt({"--tls", "server"}), kUnreachable);
  EXPECT_THAT(err_.str(), HasSubstr("; a server without TLS is called without --ca, --tls"));
}

TEST_F(RemoteTest, FetchTakesNamesAndKeepsOldFilesOnFailure) {
  ASSERT_EQ(RunAt({"submit", Path("config.yaml")}), kDone);
  EXPECT_EQ(RunAt({"fetch", "j1", "-o", Path("out"), "model.h"}), kDone);
  EXPECT_EQ(Read("out/model.h"), "the header");
  EXPECT_EQ(RunAt({"fetch", "j1", "-o", Path("out"), "nothing.h"}), kRefused);
  EXPECT_THAT(err_.str(),
              HasSubstr("npuc-remote: the job has no artifact 'nothing.h'; it has: model.h"));
  Write("out/model.h", "old");
  server_.script.corrupt_downloads = true;
  EXPECT_EQ(RunAt({"fetch", "j1", "-o", Path("out")}), kUnreachable);
  EXPECT_EQ(Read("out/model.h"), "old");
  Write("file", "");
  EXPECT_EQ(RunAt({"fetch", "j1", "-o", Path("file/below")}), kWrongUsage);
}

TEST_F(RemoteTest, ListAndServer) {
  ASSERT_EQ(RunAt({"submit", Path("config.yaml")}), kDone);
  ASSERT_EQ(RunAt({"submit", Path("config.yaml")}), kDone);
  EXPECT_EQ(RunAt({"list", "--limit", "5", "--json"}), kDone);
  EXPECT_EQ(Lines().size(), 2);
  EXPECT_EQ(RunAt({"list", "--state", "SUCCEEDED"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("j2"));
  EXPECT_EQ(RunAt({"server", "--json"}), kDone);
  EXPECT_EQ(Lines()[0]["version"], "fake 1");
  EXPECT_EQ(RunAt({"cores"}), kDone);
  EXPECT_EQ(out_.str(), "GRUS\n");
  // The fake server is older than this call.
  EXPECT_EQ(RunAt({"ops"}), kUnreachable);
}

TEST_F(RemoteTest, HealthIsInTheExitCode) {
  server_.script.conditions = {{"disk", ""}, {"store", ""}};
  EXPECT_EQ(RunAt({"health"}), kDone);
  EXPECT_EQ(out_.str(), "ready\n");
  server_.script.conditions["disk"] = "0 MiB are free";
  EXPECT_EQ(RunAt({"health"}), kUnreachable);
  EXPECT_EQ(out_.str(), "not ready\ndisk: 0 MiB are free\n");
  EXPECT_EQ(RunAt({"health", "--json"}), kUnreachable);
  EXPECT_EQ(out_.str(),
            "{\"ready\":false,\"conditions\":{\"disk\":\"0 MiB are free\",\"store\":\"ok\"}}\n");
  EXPECT_EQ(RunAt({"server", "--json"}), kDone);
  EXPECT_EQ(Lines()[0]["ready"], false);
  EXPECT_EQ(RunAt({"server"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("health   not ready\nhealth   disk: 0 MiB are free\n"));
  server_.script.conditions.clear();  // an older server
  EXPECT_EQ(RunAt({"health"}), kUnreachable);
  EXPECT_THAT(err_.str(), HasSubstr("does not tell; ask /readyz"));
  EXPECT_EQ(RunAt({"server", "--json"}), kDone);
  EXPECT_FALSE(Lines()[0].contains("ready"));
  server_.Stop();
  EXPECT_EQ(RunAt({"health"}), kUnreachable);
}

TEST_F(RemoteTest, WrongUsage) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"frobnicate"},
                                             {"compile"},
                                             {"watch"},
                                             {"list", "--state", "ODD"},
                                             {"list", "--limit", "0"},
                                             {"compile", "c.yaml", "--priority", "101"},
                                             {"compile", "c.yaml", "--timeout", "soon"},
                                             {"compile", "c.yaml", "--timeout", "8d"},
                                             {"compile", "c.yaml", "--label", "novalue"},
                                             {"status", "j1", "--bogus"}}) {
    EXPECT_EQ(RunAt(arguments), kWrongUsage) << testing::PrintToString(arguments);
    EXPECT_FALSE(err_.str().empty());
  }
  EXPECT_EQ(RunAt({"complie", "config.yaml"}), kWrongUsage);
  EXPECT_EQ(err_.str(), "npuc-remote: no command 'complie'; did you mean 'compile'?\n");
  EXPECT_EQ(Run({"--server", "no-port", "server"}), kWrongUsage);
  EXPECT_EQ(Run({"server"}), kWrongUsage);
  Write("token", "secret\n");
  EXPECT_EQ(Run({"--server", "example.com:80", "--token-file", Path("token"), "server"}), kRefused);
  EXPECT_EQ(RunAt({"--token-file", Path("token"), "server"}), kDone);
  EXPECT_EQ(server_.authorization, "Bearer secret");
}

TEST_F(RemoteTest, HelpHasExamplesForEachCommand) {
  EXPECT_EQ(Run({"--help"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("Exit codes"));
  for (const char* command : {"compile", "submit", "watch", "status", "list", "cancel", "fetch",
                              "server", "health", "cores", "ops"}) {
    EXPECT_EQ(Run({command, "--help"}), kDone);
    EXPECT_THAT(out_.str(), HasSubstr("npuc-remote " + std::string(command)));
  }
}

TEST_F(RemoteTest, OffATerminalAStageIsALineOfTheLogAlone) {
  const auto stage = [](const char* name, double fraction) {
    v1::JobEvent event;
    event.mutable_progress()->set_stage(name);
    event.mutable_progress()->set_fraction(fraction);
    return event;
  };
  server_.events.insert(server_.events.begin() + 2, {stage("import", 0.1), stage("lower", 0.5)});
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-o", Path("out")}), kDone);
  EXPECT_THAT(err_.str(), HasSubstr("running\ncompiling\nnpuc-remote: job j1 SUCCEEDED\n"));
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-o", Path("out")}, /*terminal=*/true), kDone);
  EXPECT_THAT(err_.str(), HasSubstr("compiling  lower, 50 %"));
}

TEST_F(RemoteTest, ATerminalGetsOneLineThatIsDrawnOver) {
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-o", Path("out")}, true), kDone);
  EXPECT_THAT(err_.str(), HasSubstr("\r\x1b[Kuploading  100 %"));
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-o", Path("out")}, false), kDone);
  EXPECT_THAT(err_.str(), testing::Not(HasSubstr("\x1b")));
}

TEST(OutputTest, NothingFromTheServerReachesTheTerminalRaw) {
  v1::Diagnostic diagnostic;
  diagnostic.set_id("NPUC\x1b[1");
  diagnostic.set_message("a\nb\x1b[31m");
  diagnostic.set_node("n\r");
  EXPECT_THAT(RenderDiagnostic(TextOf(diagnostic)),
              testing::Not(testing::ContainsRegex("[\x1b\n\r]")));
}

TEST_F(RemoteTest, ManyConfigsEndWithASummaryAndOneExitCode) {
  fs::create_directories(Path("configs/a"));
  fs::create_directories(Path("configs/b"));
  for (const char* name : {"configs/a/net.yaml", "configs/b/net.yaml", "configs/b/other.yml"}) {
    Write(name, kConfig);
  }
  Write("configs/b/notes.txt", "no config");
  Write("configs/a/model.pb", "some model");
  Write("configs/b/model.pb", "some model");
  EXPECT_EQ(RunAt({"compile", Path("configs/a"), Path("configs/b"), "-o", Path("out"), "--json",
                   "--jobs", "2"}),
            kDone);
  EXPECT_EQ(Read("out/a_net/model.h"), "the header");
  EXPECT_EQ(Read("out/b_net/model.h"), "the header");
  EXPECT_EQ(Read("out/b_other/model.h"), "the header");
  std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["config"], Path("configs/a/net.yaml"));
  EXPECT_EQ(lines[0]["state"], "SUCCEEDED");
  EXPECT_EQ(lines[3]["summary"]["configs"], 3);
  EXPECT_EQ(lines[3]["summary"]["states"]["SUCCEEDED"], 3);
  EXPECT_EQ(lines[3]["summary"]["exit_code"], 0);

  // One that is refused here does not keep the others from their ends, and decides the exit code.
  Write("configs/a/bad.yaml", "CORENAME: NONE\n");
  EXPECT_EQ(RunAt({"compile", Path("configs/a"), "-o", Path("out2"), "--json"}), kRefused);
  EXPECT_EQ(Read("out2/net/model.h"), "the header");
  lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["config"], Path("configs/a/bad.yaml"));
  EXPECT_FALSE(lines[0]["diagnostics"].empty());
  EXPECT_EQ(lines[2]["summary"]["states"]["REFUSED"], 1);
  EXPECT_EQ(lines[2]["summary"]["exit_code"], 3);
}

TEST_F(RemoteTest, ConfigsThatCannotStandTogetherAreWrongUsage) {
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), Path("./config.yaml")}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("is named twice"));
  EXPECT_EQ(RunAt({"compile", "-", Path("config.yaml")}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("standard input"));
  fs::create_directories(Path("empty"));
  EXPECT_EQ(RunAt({"compile", Path("empty")}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("has no *.yaml, *.yml or *.cfg file"));
}

TEST_F(RemoteTest, ColoursComeByRequestAlone) {
  v1::Diagnostic diagnostic;
  diagnostic.set_severity(v1::SEVERITY_WARNING);
  for (const bool colours : {false, true}) {
    out_.str("");
    err_.str("");
    Console console(out_, err_, /*err_is_terminal=*/false, nullptr, colours);
    console.Err({Severity::kWarning, RenderDiagnostic(TextOf(diagnostic))});
    console.Err(Console::Tone::kGood, "well");
    EXPECT_EQ(err_.str().find("\x1b[33mwarning") != std::string::npos, colours);
    EXPECT_EQ(err_.str().find("\x1b[32mwell\x1b[0m") != std::string::npos, colours);
    console.Out("data");
    EXPECT_EQ(out_.str(), "data\n");
  }
}

TEST_F(RemoteTest, AnInterruptedUploadSaysHowToGoOn) {
  interrupted_ = true;
  EXPECT_EQ(RunAt({"compile", Path("config.yaml")}), kInterrupted);
  EXPECT_THAT(err_.str(), HasSubstr("goes on with the upload"));
  EXPECT_EQ(static_cast<int>(kInterrupted), 128 + SIGINT);
}

TEST_F(RemoteTest, TheProfileStandsForOptionsAndTheEnvironmentBeforeIt) {
  EXPECT_EQ(Run({"config", "--server", server_.address()}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("server = " + server_.address()));
  EXPECT_EQ(Run({"whoami"}), kDone);
  Write("token", "secret-token\n");
  EXPECT_EQ(Run({"config", "--token-file", Path("token")}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("server = "));
  EXPECT_EQ(Run({"whoami"}), kDone);
  EXPECT_EQ(server_.authorization, "Bearer secret-token");
  setenv("NPUC_TOKEN", "of-the-environment", 1);
  EXPECT_EQ(Run({"whoami"}), kDone);
  EXPECT_EQ(server_.authorization, "Bearer of-the-environment");
  Write("other", "of-an-option");
  EXPECT_EQ(Run({"whoami", "--token-file", Path("other")}), kDone);
  EXPECT_EQ(server_.authorization, "Bearer of-an-option");
  unsetenv("NPUC_TOKEN");
  constexpr char kTraceparent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  setenv("TRACEPARENT", kTraceparent, 1);
  EXPECT_EQ(Run({"whoami"}), kDone);
  EXPECT_EQ(server_.traceparent, kTraceparent);
  unsetenv("TRACEPARENT");
  setenv("NPUC_CA", Path("no-such.pem").c_str(), 1);
  EXPECT_EQ(Run({"whoami"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("no-such.pem"));
  unsetenv("NPUC_CA");
  Write("remote.conf", "server = x\ncolour = red\n");
  EXPECT_EQ(Run({"whoami"}), kWrongUsage);
  EXPECT_THAT(err_.str(), HasSubstr("remote.conf:2: 'colour = red'"));
}

TEST_F(RemoteTest, LogsRetryAndQuiet) {
  ASSERT_EQ(RunAt({"submit", Path("config.yaml"), "--label", "run=12"}), kDone);
  EXPECT_EQ(RunAt({"logs", "j1"}), kDone);
  EXPECT_EQ(out_.str(), "reading\nwriting\n");
  EXPECT_EQ(RunAt({"retry", "j1"}), kDone);
  EXPECT_EQ(out_.str(), "j2\n");
  EXPECT_EQ(server_.last_create.spec().config_text(), kConfig);
  EXPECT_EQ(server_.last_create.spec().labels().at("run"), "12");
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-o", Path("out"), "--quiet"}), kDone);
  EXPECT_THAT(out_.str(), Not(HasSubstr("reading")));
  EXPECT_THAT(err_.str(), Not(HasSubstr("uploading")));
  server_.Fail();
  EXPECT_EQ(RunAt({"compile", Path("config.yaml"), "-q"}), kJobFailed);
  EXPECT_THAT(err_.str(), HasSubstr("stride 9 exceeds 3"));
}

TEST_F(RemoteTest, ARefusalForNoIdentityNamesTheOptions) {
  server_.script.create_error =
      client::ServiceStatus(grpc::StatusCode::UNAUTHENTICATED, "who are you?", "NO_IDENTITY");
  EXPECT_EQ(RunAt({"compile", Path("config.yaml")}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("--token-file"));
}

TEST_F(RemoteTest, ListSendsItsFiltersAndShowsWho) {
  EXPECT_EQ(RunAt({"submit", Path("config.yaml"), "--label", "run=12"}), kDone);
  EXPECT_EQ(RunAt({"list", "--label", "run=12", "--core", "GRUS", "--mine", "--since", "2h",
                   "--sort", "took", "--reverse", "--text", "conf", "--tenant", "audio"}),
            kDone);
  EXPECT_THAT(out_.str(), HasSubstr("run=12"));
  const v1::ListCompileJobsRequest& request = server_.last_list;
  EXPECT_EQ(request.labels(0), "run=12");
  EXPECT_EQ(request.cores(0), "GRUS");
  EXPECT_EQ(request.tenants(0), "audio");
  EXPECT_EQ(request.text(), "conf");
  EXPECT_TRUE(request.mine() && request.reverse());
  EXPECT_EQ(request.order(), v1::JOB_ORDER_TOOK);
  EXPECT_NEAR(static_cast<double>(request.created_from().seconds()),
              static_cast<double>(absl::ToUnixSeconds(absl::Now()) - 7200), 60.0);
  EXPECT_EQ(RunAt({"list", "--sort", "colour"}), kWrongUsage);
  EXPECT_EQ(RunAt({"whoami"}), kDone);
  EXPECT_EQ(out_.str(), "identity  ci\ntenant    audio\nrights    submit read\n");
  EXPECT_EQ(RunAt({"whoami", "--json"}), kDone);
  EXPECT_EQ(Lines()[0]["rights"][1], "read");
}

TEST_F(RemoteTest, InspectUploadsAndShowsVerdictsConfigOrJson) {
  Write("net.onnx", "some onnx");
  const auto set = [&](const std::string& json) {
    return google::protobuf::util::JsonStringToMessage(json,
                                                       server_.inspection.mutable_inspection())
        .ok();
  };
  ASSERT_TRUE(set(R"({"format": "ONNX", "weights": 12345678901, "verdicts": [
      {"family": "GRUS", "configs": {"GRUS": "CORENAME: GRUS\nA: 1\n"}}]})"));
  server_.inspection.set_text("net.onnx: ONNX\ncores\n");
  EXPECT_EQ(RunAt({"inspect", Path("net.onnx"), "--input-shape", "1,40", "--dim", "t=3"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("net.onnx: ONNX\ncores\nnext: npuc-remote inspect"));
  EXPECT_EQ(server_.last_inspect.model_name(), "net.onnx");
  EXPECT_EQ(server_.last_inspect.input_shapes(0), "1,40");
  EXPECT_EQ(server_.last_inspect.dims(0), "t=3");
  EXPECT_EQ(server_.blobs[server_.last_inspect.model().sha256()], "some onnx");
  EXPECT_EQ(RunAt({"inspect", Path("net.onnx"), "-c", "grus"}), kDone);
  EXPECT_EQ(out_.str(), "CORENAME: GRUS\nA: 1\n");
  EXPECT_EQ(RunAt({"inspect", Path("net.onnx"), "-c", "NONE"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("known: GRUS"));
  EXPECT_EQ(RunAt({"inspect", Path("net.onnx"), "--json"}), kDone);
  EXPECT_EQ(Lines()[0]["weights"], 12345678901);
  EXPECT_EQ(Lines()[0]["ok"], true);
}

TEST_F(RemoteTest, InspectTakesTheSecondFileAndTellsWhatIsNoModel) {
  Write("net.cfg", "[net]");
  Write("net.weights", "numbers");
  server_.inspection.add_diagnostics()->set_message("no model");
  EXPECT_EQ(RunAt({"inspect", Path("net.cfg")}), kJobFailed);
  EXPECT_THAT(err_.str(), HasSubstr("no model"));
  ASSERT_EQ(server_.last_inspect.side_inputs_size(), 1);
  EXPECT_EQ(server_.last_inspect.side_inputs(0).role(), "WEIGHTS_FILE");
  EXPECT_EQ(server_.blobs[server_.last_inspect.side_inputs(0).digest().sha256()], "numbers");
  EXPECT_EQ(RunAt({"inspect", Path("missing.onnx")}), kRefused);
}

TEST_F(RemoteTest, ManPageAndCompletionKnowEveryOption) {
  EXPECT_EQ(Run({"man"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr(".SS compile"));
  EXPECT_THAT(out_.str(), HasSubstr("\\fB\\-\\-no\\-cache\\fR"));
  EXPECT_THAT(out_.str(), HasSubstr(".SH EXIT STATUS"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(Run({"completion", shell}), kDone);
    EXPECT_THAT(out_.str(), HasSubstr("no-cache")) << shell;
    EXPECT_THAT(out_.str(), HasSubstr("token-file")) << shell;
  }
  EXPECT_EQ(Run({"completion", "csh"}), kWrongUsage);
}

// U+202E turns text around, ESC steers a terminal, U+009B does so without an ESC.
TEST(ConsoleTest, WhatSteersATerminalIsShownAsEscapes) {
  std::ostringstream out, err;
  {
    Console console(out, err, /*err_is_terminal=*/true, nullptr, /*colours=*/true);
    console.Out("a\xe2\x80\xaetxt.exe\x1b[2J");
    console.Err("two\nlines\xc2\x9b 1m");
    console.Err(Console::Tone::kBad, "\x1b]0;title\x07");
    console.progress().Show("\x1b[1m", "\xe2\x80\xae");
    console.Fail(absl::InternalError("\xe2\x80\xae!"), /*json=*/true);
  }
  EXPECT_THAT(out.str(), HasSubstr("a\\u202etxt.exe\\x1b[2J\n"));
  EXPECT_THAT(err.str(), HasSubstr("two\nlines\\u009b 1m\n"));
  EXPECT_THAT(err.str(), HasSubstr("\x1b[31m\\x1b]0;title\\x07\x1b[0m\n"));
  EXPECT_THAT(err.str(), HasSubstr("\\x1b[1m  \\u202e"));
  EXPECT_THAT(out.str() + err.str(), Not(HasSubstr("\xe2\x80\xae")));
  const std::string object = out.str().substr(out.str().find('{'));
  EXPECT_EQ(Json::parse(object)["error"]["message"], "\xe2\x80\xae!");
}

}  // namespace
}  // namespace npuc::remote
