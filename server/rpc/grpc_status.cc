#include "server/rpc/grpc_status.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "compiler_core/base/diagnostic.h"
#include "server/api/status_details.h"

namespace npuc::rpc {
namespace {

// A status travels in the trailers, of which clients take 8 KiB by default; with more, gRPC tells
// the client RESOURCE_EXHAUSTED and nothing else. The rest is for names and lengths.
constexpr size_t kTrailerBytes = 7 << 10;
constexpr size_t kMessageBytes = 1 << 10;

// gRPC percent-encodes the message.
size_t EncodedBytes(absl::string_view message) {
  const auto plain = std::count_if(message.begin(), message.end(), [](unsigned char c) {
    return absl::ascii_isprint(c) && c != '%';
  });
  return 3 * message.size() - 2 * static_cast<size_t>(plain);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  absl::Status shown = status;
  if (EncodedBytes(status.message()) > kMessageBytes) {
    shown = absl::Status(status.code(), Printable(status.message(), kMessageBytes / 3));
    status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
      shown.SetPayload(type, payload);
    });
  }
  // The details may be sent as base64: four bytes for three.
  const rpc::Status out =
      api::ToStatusProto(shown, (kTrailerBytes - EncodedBytes(shown.message())) / 4 * 3);
  return grpc::Status(static_cast<grpc::StatusCode>(shown.code()), out.message(),
                      out.SerializeAsString());
}

}  // namespace npuc::rpc
