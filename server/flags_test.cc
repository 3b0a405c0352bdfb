#include "server/flags.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::daemon {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Flags> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "npucd");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data());
}

std::string ErrorOf(std::vector<const char*> arguments) {
  const auto flags = Parse(std::move(arguments));
  EXPECT_FALSE(flags.ok());
  return std::string(flags.status().message());
}

TEST(FlagsTest, BothSpellings) {
  const auto flags = Parse({"--data-dir", "/d", "--insecure", "--listen=[::1]:0", "--workers=3",
                            "--http", "localhost:0", "--port-file", "/p"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->data_dir, "/d");
  EXPECT_EQ(flags->listen, "[::1]:0");
  EXPECT_EQ(flags->http, "localhost:0");
  EXPECT_EQ(flags->workers, 3);
  EXPECT_EQ(flags->port_file, "/p");
}

TEST(FlagsTest, DefaultsCanBeServed) {
  const auto flags = Parse({"--data-dir", "/d", "--insecure"});
  ASSERT_TRUE(flags.ok());
  EXPECT_GE(flags->workers, 1);
  EXPECT_EQ(flags->spares, flags->workers + 1);
  EXPECT_EQ(flags->http, "");
  EXPECT_FALSE(flags->shared_cache);
  EXPECT_TRUE(Parse({"--data-dir", "/d", "--insecure", "--shared-cache"})->shared_cache);
}

TEST(FlagsTest, AClusterNeedsItsUrl) {
  const auto flags =
      Parse({"--data-dir", "/d", "--insecure", "--cluster=postgres://npucd@db/npuc",
             "--cluster-secret-file", "/s", "--node-name", "rack-1.a", "--node-ttl-seconds=5",
             "--cluster-content-mib", "100", "--feature-wait-hours", "0"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->cluster, "postgres://npucd@db/npuc");
  EXPECT_EQ(flags->cluster_secret_file, "/s");
  EXPECT_EQ(flags->node_name, "rack-1.a");
  EXPECT_EQ(flags->node_ttl_seconds, 5);
  EXPECT_EQ(flags->feature_wait_hours, 0);
  EXPECT_EQ(flags->cluster_content_mib, 100);
  // Nothing is served.
  EXPECT_TRUE(Parse({"--migrate", "--cluster", "postgres://db/npuc"})->migrate);
  EXPECT_THAT(ErrorOf({"--migrate"}), HasSubstr("need --cluster"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--node-name", "a"}),
              HasSubstr("need --cluster"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--cluster", "x", "--node-name", "a b"}),
              HasSubstr("--node-name 'a b'"));
  EXPECT_THAT(ErrorOf({"--node-ttl-seconds", "1"}), HasSubstr("2 to 3600"));
}

TEST(FlagsTest, ContentOfAClusterLiesInOneOfThreePlaces) {
  const std::vector<const char*> base = {"--data-dir", "/d", "--insecure", "--cluster",
                                         "postgres://db/npuc"};
  const auto with = [&](const std::vector<const char*>& more) {
    std::vector<const char*> all = base;
    all.insert(all.end(), more.begin(), more.end());
    return Parse(all);
  };
  using Kind = objects::Location::Kind;
  EXPECT_EQ(with({})->cluster_content.kind, Kind::kPostgres);
  EXPECT_EQ(with({"--cluster-content", "file:///mnt/share"})->cluster_content.folder, "/mnt/share");
  const auto s3 =
      with({"--cluster-content=s3://farm/npuc?region=eu-1", "--cluster-content-credentials-file",
            "/c", "--cluster-content-ca-file=/a"});
  ASSERT_TRUE(s3.ok()) << s3.status();
  EXPECT_EQ(s3->cluster_content.bucket, "farm");
  EXPECT_EQ(s3->cluster_content_credentials_file, "/c");
  EXPECT_EQ(s3->cluster_content_ca_file, "/a");
  const auto said = [&](const std::vector<const char*>& more) {
    return std::string(with(more).status().message());
  };
  EXPECT_THAT(said({"--cluster-content", "nfs://x"}),
              HasSubstr("--cluster-content 'nfs://x': it is"));
  EXPECT_THAT(said({"--cluster-content", "s3://farm?region=a"}),
              HasSubstr("needs --cluster-content-credentials-file"));
  EXPECT_THAT(said({"--cluster-content-credentials-file", "/c"}),
              HasSubstr("need --cluster-content s3://"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--cluster-content", "file:///mnt"}),
              HasSubstr("need --cluster"));
}

TEST(FlagsTest, TracesGoToACollector) {
  const auto flags =
      Parse({"--data-dir", "/d", "--insecure", "--otlp-endpoint", "https://collector",
             "--otlp-headers-file=/h", "--otlp-ca-file", "/ca", "--otlp-sampling-ratio", "0.25"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->otlp_endpoint, "https://collector");
  EXPECT_EQ(flags->otlp_headers_file, "/h");
  EXPECT_EQ(flags->otlp_ca_file, "/ca");
  EXPECT_EQ(flags->otlp_sampling_ratio, 0.25);
  for (const char* ratio : {"2", "-0.1", "nan", "x", ""}) {
    EXPECT_THAT(ErrorOf({"--otlp-sampling-ratio", ratio}), HasSubstr("0 to 1")) << ratio;
  }
  EXPECT_THAT(ErrorOf({"--otlp-endpoint", "ftp://c"}), HasSubstr("--otlp-endpoint 'ftp://c'"));
  for (const char* flag : {"--otlp-headers-file", "--otlp-ca-file"}) {
    EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", flag, "/h"}),
                HasSubstr(absl::StrCat(flag, " needs --otlp-endpoint")));
  }
}

TEST(FlagsTest, PeopleSignInByAProvider) {
  const std::vector<const char*> served = {"--data-dir", "/d",          "--tls-cert", "c",
                                           "--tls-key",  "k",           "--tenants",  "t",
                                           "--web",      "0.0.0.0:8480"};
  const auto with = [&served](std::vector<const char*> more) {
    more.insert(more.begin(), served.begin(), served.end());
    return more;
  };
  const auto flags = Parse(
      with({"--oidc-issuer", "https://login.farm.example/realms/farm", "--oidc-client-id=npuc",
            "--oidc-client-secret-file", "/s", "--oidc-page-url", "https://npuc.farm.example:443/",
            "--oidc-scopes", "openid groups", "--oidc-claim", "groups", "--oidc-ca-file", "/ca"}));
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->oidc.issuer, "https://login.farm.example/realms/farm");
  EXPECT_EQ(flags->oidc.client_id, "npuc");
  EXPECT_EQ(flags->oidc_secret_file, "/s");
  EXPECT_EQ(flags->oidc.page_url, "https://npuc.farm.example");
  EXPECT_EQ(flags->oidc.scopes, "openid groups");
  EXPECT_EQ(flags->oidc.claim, "groups");
  EXPECT_EQ(flags->oidc.ca_file, "/ca");
  EXPECT_EQ(flags->oidc.name, "login.farm.example");
  EXPECT_THAT(ErrorOf(with({"--oidc-issuer", "https://a", "--oidc-client-id=npuc"})),
              HasSubstr("--oidc-page-url https://HOST[:PORT] is required beside --web 0.0.0.0"));
  EXPECT_THAT(ErrorOf(with({"--oidc-issuer", "https://a"})), HasSubstr("needs --oidc-client-id"));
  EXPECT_THAT(ErrorOf(with({"--oidc-name", "a"})), HasSubstr("need --oidc-issuer"));
  EXPECT_THAT(ErrorOf(with({"--oidc-claim", "sub"})), HasSubstr("need --oidc-issuer"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--web", "127.0.0.1:0", "--oidc-issuer",
                       "https://a", "--oidc-client-id", "b"}),
              HasSubstr("--tenants FILE"));
  const auto here = Parse({"--data-dir", "/d", "--insecure", "--tenants", "t", "--web",
                           "127.0.0.1:0", "--oidc-issuer", "http://localhost:1", "--oidc-client-id",
                           "b", "--oidc-name", "Farm"});
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->oidc.page_url, "");
  EXPECT_EQ(here->oidc.name, "Farm");
  EXPECT_THAT(ErrorOf({"--oidc-issuer", "http://login.farm.example"}),
              HasSubstr("--oidc-issuer 'http://login.farm.example' would be reached without"));
  EXPECT_THAT(ErrorOf({"--oidc-scopes", "email"}), HasSubstr("'openid' among them"));
  EXPECT_THAT(ErrorOf({"--oidc-claim", "a b"}), HasSubstr("--oidc-claim 'a b'"));
  EXPECT_THAT(ErrorOf({"--oidc-page-url", "https://a/b"}), HasSubstr("--oidc-page-url"));
  EXPECT_THAT(ErrorOf({"--oidc-client-id", ""}), HasSubstr("--oidc-client-id"));
}

TEST(FlagsTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(ErrorOf({"--insecure"}), HasSubstr("--data-dir"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d"}), HasSubstr("or --insecure to serve this machine"));
  EXPECT_THAT(ErrorOf({"--data-dir"}), HasSubstr("needs a value"));
  EXPECT_EQ(ErrorOf({"--datadir", "/d"}), "unknown option '--datadir'; did you mean '--data-dir'?");
  EXPECT_EQ(ErrorOf({"--worker=2"}), "unknown option '--worker=2'; did you mean '--workers'?");
  EXPECT_EQ(ErrorOf({"more"}), "unknown option 'more'");
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--tls-cert", "x"}), HasSubstr("--tls-key"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--tls-cert", "x", "--tls-key", "y"}),
              HasSubstr("--tenants FILE is required"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--tls-cert", "x"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--client-ca", "x"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--listen", "0.0.0.0:1"}),
              HasSubstr("this machine alone"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--http", "example.org:1"}),
              HasSubstr("this machine alone"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--web", "0.0.0.0:1"}),
              HasSubstr("this machine alone"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--listen", "127.0.0.1"}),
              HasSubstr("HOST:PORT"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--listen", "127.0.0.1:70000"}),
              HasSubstr("HOST:PORT"));
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--insecure", "--workers", "0"}), HasSubstr("1 to 256"));
}

TEST(FlagsTest, TlsServesAnyAddress) {
  const auto flags = Parse({"--data-dir", "/d", "--listen", "0.0.0.0:443", "--tls-cert", "c",
                            "--tls-key", "k", "--client-ca", "a", "--tenants", "t"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->tls_cert, "c");
  EXPECT_EQ(flags->tls_key, "k");
  EXPECT_EQ(flags->client_ca, "a");
  EXPECT_EQ(flags->tenants, "t");
  EXPECT_THAT(ErrorOf({"--data-dir", "/d", "--tls-cert", "c", "--tls-key", "k", "--tenants", "t",
                       "--http", "0.0.0.0:80"}),
              HasSubstr("this machine alone"));
}

TEST(FlagsTest, SandboxIsRequiredWhereOthersAreServed) {
  const std::vector<const char*> local = {"--data-dir", "/d", "--insecure"};
  const std::vector<const char*> tls = {"--data-dir", "/d", "--tls-cert", "c",
                                        "--tls-key",  "k",  "--tenants",  "t"};
  EXPECT_EQ(Parse(local)->sandbox, worker::SandboxMode::kBestEffort);
  EXPECT_EQ(Parse(tls)->sandbox, worker::SandboxMode::kRequire);
  const auto with = [](std::vector<const char*> arguments, const char* more) {
    arguments.push_back(more);
    return arguments;
  };
  EXPECT_EQ(Parse(with(local, "--sandbox=require"))->sandbox, worker::SandboxMode::kRequire);
  EXPECT_EQ(Parse(with(tls, "--sandbox=best-effort"))->sandbox, worker::SandboxMode::kBestEffort);
  EXPECT_THAT(ErrorOf(with(local, "--sandbox=off")), HasSubstr("require nor best-effort"));
  EXPECT_EQ(Parse(local)->cgroup, Flags::Cgroup::kAuto);
  EXPECT_EQ(Parse(with(local, "--cgroup=require"))->cgroup, Flags::Cgroup::kRequire);
  EXPECT_EQ(Parse(with(local, "--cgroup=off"))->cgroup, Flags::Cgroup::kOff);
  EXPECT_THAT(ErrorOf(with(local, "--cgroup=v1")), HasSubstr("auto, require and off"));
}

TEST(FlagsTest, AllProblemsComeAtOnce) {
  EXPECT_EQ(ErrorOf({"--worker=2", "--workers=0", "--cgroup=v1"}),
            "unknown option '--worker=2'; did you mean '--workers'?\n"
            "--workers '0' is not a number of 1 to 256\n"
            "--cgroup 'v1' is none of auto, require and off");
}

// A file of options, removed at the end.
class FlagsFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = absl::StrCat(::testing::TempDir(), "/npucd-flags-", getpid(), ".yaml");
  }
  void TearDown() override { std::remove(path_.c_str()); }
  void Write(absl::string_view text) { std::ofstream(path_) << text; }
  std::string Option() const { return absl::StrCat("--config=", path_); }

  std::string path_;
};

TEST_F(FlagsFileTest, TheCommandLineOverridesTheFile) {
  Write(
      "# the farm\ndata-dir: /d\nlisten: '127.0.0.1:1'\nworkers: 3\ninsecure: true\n"
      "shared-cache: false\n");
  const std::string option = Option();
  const auto flags = Parse({"--workers=5", option.c_str()});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->data_dir, "/d");
  EXPECT_EQ(flags->listen, "127.0.0.1:1");
  EXPECT_EQ(flags->workers, 5);
  EXPECT_TRUE(flags->insecure);
  EXPECT_FALSE(flags->shared_cache);
}

TEST_F(FlagsFileTest, WhatIsWrongIsNamedWithItsLine) {
  Write(
      "data-dir: /d\nworker: 3\nworkers: 0\ninsecure: yes\nlisten: [a]\nversion: true\n"
      "backup: /b\n");
  const std::string option = Option();
  const std::string error = ErrorOf({option.c_str()});
  for (const char* found :
       {":2: unknown option 'worker'; did you mean '--workers'?",
        ":3: --workers '0' is not a number", ":4: 'insecure' takes true or false, found 'yes'",
        ":5: 'listen' takes a value, found a list", ":6: 'version' is an option of a call",
        ":7: 'backup' is an option of a call"}) {
    EXPECT_THAT(error, HasSubstr(absl::StrCat(path_, found)));
  }
  Write("- a\n");
  EXPECT_THAT(ErrorOf({option.c_str()}), HasSubstr("is no mapping"));
  Write("a: &x 1\n");
  EXPECT_THAT(ErrorOf({option.c_str()}), HasSubstr("an anchor"));
  Write(std::string(kMaxFlagsFileBytes + 1, '#'));
  EXPECT_THAT(ErrorOf({option.c_str()}), HasSubstr("more than 65536 bytes"));
  EXPECT_THAT(ErrorOf({"--config", "/nowhere/x.yaml"}), HasSubstr("cannot read /nowhere/x.yaml"));
}

TEST(FlagsTest, TasksOnDataNeedNoWayToServe) {
  const auto backup = Parse({"--backup", "/b", "--data-dir", "/d"});
  ASSERT_TRUE(backup.ok()) << backup.status();
  EXPECT_FALSE(backup->serves());
  EXPECT_TRUE(Parse({"--check=/d"}).ok());
  EXPECT_THAT(ErrorOf({"--restore", "/b"}), HasSubstr("--data-dir DIR is required"));
  EXPECT_THAT(ErrorOf({"--restore", "/b", "--check", "/d"}), HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOf({"--check-config"}), HasSubstr("--data-dir"));
}

TEST(FlagsTest, HelpAndVersionNeedNothingElse) {
  EXPECT_TRUE(Parse({"--new-token"})->new_token);
  EXPECT_TRUE(Parse({"--help"})->help);
  EXPECT_TRUE(Parse({"--version"})->version);
}

}  // namespace
}  // namespace npuc::daemon
