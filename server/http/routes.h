#ifndef NPUC_SERVER_HTTP_ROUTES_H_
#define NPUC_SERVER_HTTP_ROUTES_H_

#include "absl/status/status.h"
#include "server/api/dependencies.h"
#include "server/http/event_streams.h"
#include "server/http/http_message.h"
#include "server/http/http_server.h"

namespace npuc::http {

// What the paths of the service stand on.
struct RouteContext {
  const api::ApiDependencies* deps;
  EventStreams* streams;
  bool uses_tls;
};

// Decides by the head of a request below /v1/ or /auth/: path, method, identity, right, and the
// type of the body, in this order, so that nobody without an identity has a body read. `context`
// must outlive the request.
HttpAdmission AdmitApi(const RouteContext& context, const HttpRequest& head);

// An error as an answer.
HttpResponse ErrorResponse(const absl::Status& status);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_ROUTES_H_
