#include "server/http/json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/reflection.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/type.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "compiler_core/base/diagnostic.h"
#include "npuc/rpc/status_details.pb.h"
#include "server/api/status_details.h"
#include "server/jobs/service_error.h"

namespace npuc::http {
namespace {

namespace pb = google::protobuf;

constexpr char kUrlPrefix[] = "type.googleapis.com";
constexpr size_t kShownBytes = 64;

// Finds google.rpc's error details among ours, which have the same wire format.
class StatusResolver : public pb::util::TypeResolver {
 public:
  StatusResolver()
      : known_(pb::util::NewTypeResolverForDescriptorPool(kUrlPrefix,
                                                          pb::DescriptorPool::generated_pool())) {}

  pb::util::Status ResolveMessageType(const std::string& url, pb::Type* type) override {
    constexpr absl::string_view kTheirs = "type.googleapis.com/google.rpc.";
    if (!absl::StartsWith(url, kTheirs)) return known_->ResolveMessageType(url, type);
    return known_->ResolveMessageType(
        absl::StrCat(kUrlPrefix, "/npuc.rpc.", absl::StripPrefix(url, kTheirs)), type);
  }
  pb::util::Status ResolveEnumType(const std::string& url, pb::Enum* type) override {
    return known_->ResolveEnumType(url, type);
  }

 private:
  const std::unique_ptr<pb::util::TypeResolver> known_;
};

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

bool IsTime(const pb::FieldDescriptor& field) {
  return field.message_type() != nullptr &&
         field.message_type()->full_name() == pb::Timestamp::descriptor()->full_name();
}

// Sets or adds one value; false: the text is none of the field's type.
bool SetField(pb::Message* message, const pb::FieldDescriptor* field, const std::string& text) {
  const pb::Reflection& access = *message->GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_STRING:
      many ? access.AddString(message, field, text) : access.SetString(message, field, text);
      return true;
    case pb::FieldDescriptor::CPPTYPE_INT32: {
      int32_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return false;
      many ? access.AddInt32(message, field, value) : access.SetInt32(message, field, value);
      return true;
    }
    case pb::FieldDescriptor::CPPTYPE_INT64: {
      int64_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return false;
      many ? access.AddInt64(message, field, value) : access.SetInt64(message, field, value);
      return true;
    }
    case pb::FieldDescriptor::CPPTYPE_ENUM: {
      int value = 0;
      const auto* const named = field->enum_type()->FindValueByName(text);
      if (named != nullptr) {
        value = named->number();
      } else if (!absl::SimpleAtoi(text, &value)) {
        return false;
      }
      many ? access.AddEnumValue(message, field, value)
           : access.SetEnumValue(message, field, value);
      return true;
    }
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      if (many || (text != "true" && text != "false")) return false;
      access.SetBool(message, field, text == "true");
      return true;
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      return !many && IsTime(*field) &&
             pb::util::TimeUtil::FromString(
                 text, static_cast<pb::Timestamp*>(access.MutableMessage(message, field)));
    default:
      return false;
  }
}

// A field, and the message that has it: the given one, or one in it.
struct Place {
  pb::Message* message = nullptr;
  const pb::FieldDescriptor* field = nullptr;
};

// Finds "field" or "message.field", which a route of the protos names: the message has it.
Place PlaceOf(absl::string_view path, pb::Message* message) {
  const std::pair<std::string, std::string> names = absl::StrSplit(path, absl::MaxSplits('.', 1));
  const pb::FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(names.first);
  if (names.second.empty()) return {message, field};
  return PlaceOf(names.second, message->GetReflection()->MutableMessage(message, field));
}

const pb::FieldDescriptor* FieldNamed(const std::string& name, const pb::Descriptor& type) {
  const pb::FieldDescriptor* field = type.FindFieldByCamelcaseName(name);
  return field != nullptr ? field : type.FindFieldByName(name);
}

// Without a field where no parameter has that name.
Place PlaceOfParameter(const std::string& name, pb::Message* message) {
  const pb::Descriptor& type = *message->GetDescriptor();
  if (const auto* field = FieldNamed(name, type)) return {message, field};
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* outer = type.field(i);
    if (outer->message_type() == nullptr || outer->is_repeated() || IsTime(*outer)) continue;
    const auto* field = FieldNamed(name, *outer->message_type());
    if (field != nullptr) return {message->GetReflection()->MutableMessage(message, outer), field};
  }
  return {};
}

}  // namespace

std::string ToJson(const pb::Message& message) {
  std::string text;
  const auto status = pb::util::MessageToJsonString(message, &text);
  return status.ok() ? text : "{}";
}

absl::Status FromJson(absl::string_view text, pb::Message* message) {
  if (absl::StripAsciiWhitespace(text).empty()) return absl::OkStatus();
  const auto status = pb::util::JsonStringToMessage({text.data(), text.size()}, message);
  if (status.ok()) return absl::OkStatus();
  const std::string why(status.message().data(), status.message().size());
  return jobs::ServiceError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the body is no JSON of ", message->GetDescriptor()->name(), ": ",
                   Printable(why, 512)),
      {.reason = "INVALID_JSON"});
}

absl::Status FromQuery(const std::multimap<std::string, std::string>& query,
                       absl::string_view required, pb::Message* message) {
  jobs::FieldChecker check;
  for (const auto& [name, text] : query) {
    const Place place = PlaceOfParameter(name, message);
    if (place.field == nullptr) {
      check.Add(Printable(name, kShownBytes), "is no parameter of this call");
    } else if (!place.field->is_repeated() && query.count(name) > 1) {
      check.Add(place.field->name(), "is given more than once");
    } else if (!SetField(place.message, place.field, text)) {
      check.Add(place.field->name(),
                absl::StrCat("'", Printable(text, kShownBytes), "' is not a value"));
    }
  }
  if (!required.empty()) {
    const pb::FieldDescriptor* field = PlaceOf(required, message).field;
    if (query.count(field->name()) + query.count(field->camelcase_name()) == 0) {
      check.Add(field->camelcase_name(), "is not given");
    }
  }
  return check.ToStatus();
}

void SetText(absl::string_view field, const std::string& text, pb::Message* message) {
  const Place place = PlaceOf(field, message);
  place.message->GetReflection()->SetString(place.message, place.field, text);
}

void LeaveField(absl::string_view field, pb::Message* message) {
  const pb::Reflection& access = *message->GetReflection();
  std::vector<const pb::FieldDescriptor*> set;
  access.ListFields(*message, &set);
  for (const pb::FieldDescriptor* other : set) {
    if (other->name() != field) access.ClearField(message, other);
  }
}

HttpError ToHttpError(const absl::Status& status) {
  HttpError error;
  error.http_status = HttpStatusOf(status.code());
  const rpc::Status wire = api::ToStatusProto(status);
  StatusResolver resolver;
  const std::string bytes = wire.SerializeAsString();
  pb::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  pb::io::StringOutputStream out(&error.body);
  const auto written = pb::util::BinaryToJsonStream(
      &resolver, absl::StrCat(kUrlPrefix, "/npuc.rpc.Status"), &in, &out);
  if (!written.ok()) error.body = R"({"code":13,"message":"the error cannot be shown"})";
  const auto details = jobs::ErrorDetailsOf(status);
  if (details.has_value() && details->retry_delay.has_value()) {
    const absl::Duration whole = absl::Ceil(*details->retry_delay, absl::Seconds(1));
    error.retry_after = absl::StrCat(absl::ToInt64Seconds(whole));
  }
  return error;
}

}  // namespace npuc::http
