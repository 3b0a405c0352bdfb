#include "server/log/log.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(LogTest, OneJsonObjectALine) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  const Logger logger(out, [] { return absl::FromUnixMicros(1'700'000'000'123456); });
  logger.Error("bad \"thing\"\n", {{"job", "j1"}, {"path", "a\\b"}});
  std::fclose(out);
  EXPECT_STREQ(text,
               "{\"time\":\"2023-11-14T22:13:20.123456Z\",\"level\":\"ERROR\","
               "\"message\":\"bad \\\"thing\\\"\\\\x0a\",\"job\":\"j1\",\"path\":\"a\\\\b\"}\n");
  std::free(text);
}

}  // namespace
}  // namespace npuc
