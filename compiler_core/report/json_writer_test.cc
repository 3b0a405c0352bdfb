#include "compiler_core/report/json_writer.h"

#include <limits>

#include "gtest/gtest.h"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

TEST(JsonWriter, WritesWhatNlohmannDumps) {
  const std::vector<int64_t> shape = {1, 96, -3};
  const std::vector<double> numbers = {0.0,  -0.0,   1.0,  0.1,  1e-7,   123456789.0,
                                       1e22, 5e-324, 1e15, 1e16, 2.5e-5, 0.30000000000000004};
  const std::vector<std::string> texts = {"",         "plain",       "quote\" back\\slash",
                                          "\n\t\x01", "\x7f del",    "gr\xc3\xbc\xc3\x9f",
                                          "\xff bad", "/ & <script>"};
  const Json part = {{"a", {1, 2}}, {"none", nullptr}, {"empty", Json::object()}};
  Json expected;
  expected["texts"] = texts;
  expected["numbers"] = numbers;
  expected["shape"] = shape;
  expected["no shape"] = std::vector<int64_t>();
  expected["part"] = part;
  expected["empty object"] = Json::object();
  expected["key \"x\""] = Json{{"yes", true}, {"no", false}, {"big", uint64_t{1} << 63}};
  expected["not finite"] = std::numeric_limits<double>::infinity();
  expected["objects"] = {Json{{"x", 1.5f}}, Json::object(), Json::array({Json::array()})};

  JsonWriter out;
  out.BeginObject();
  out.Key("texts");
  out.BeginArray();
  for (const std::string& text : texts) out.Value(text);
  out.EndArray();
  out.Key("numbers");
  out.BeginArray();
  for (const double number : numbers) out.Value(number);
  out.EndArray();
  out.Members("shape", shape, "no shape", std::vector<int64_t>(), "part", part);
  out.Key("empty object");
  out.BeginObject();
  out.EndObject();
  out.Key("key \"x\"");
  out.BeginObject();
  out.Members("yes", true, "no", false, "big", uint64_t{1} << 63);
  out.EndObject();
  out.Member("not finite", std::numeric_limits<double>::infinity());
  out.Key("objects");
  out.BeginArray();
  out.BeginObject();
  out.Member("x", 1.5f);
  out.EndObject();
  out.BeginObject();
  out.EndObject();
  out.BeginArray();
  out.BeginArray();
  out.EndArray();
  out.EndArray();
  out.EndArray();
  out.EndObject();
  EXPECT_EQ(out.Take(), Dump(expected));
}

}  // namespace
}  // namespace npuc
