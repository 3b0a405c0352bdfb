#include "server/log/log.h"

#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::log {
namespace {

TEST(LogTest, OneJsonObjectALine) {
  std::FILE* const out = std::tmpfile();
  ASSERT_NE(out, nullptr);
  const Logger logger(out, [] { return absl::FromUnixMicros(1'700'000'000'123456); });
  logger.Error("bad \"thing\"\n", {{"job", "j1"}, {"path", "a\\b"}});
  std::string text(4096, '\0');
  std::rewind(out);
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  EXPECT_EQ(text,
            "{\"time\":\"2023-11-14T22:13:20.123456Z\",\"level\":\"ERROR\","
            "\"message\":\"bad \\\"thing\\\"\\\\x0a\",\"job\":\"j1\",\"path\":\"a\\\\b\"}\n");
}

}  // namespace
}  // namespace npuc::log
