#ifndef NPUC_SERVER_HTTP_ROUTES_H_
#define NPUC_SERVER_HTTP_ROUTES_H_

#include <httplib.h>

#include "server/api/dependencies.h"
#include "server/http/event_streams.h"

namespace npuc {

// What the paths below /v1 stand on.
struct RouteContext {
  const ApiDependencies* deps;
  EventStreams* streams;
};

// Answers one request below /v1/, errors included.
void HandleApi(const RouteContext& context, const httplib::Request& request,
               httplib::Response& response);

// Puts an error into a response.
void SetError(const absl::Status& status, httplib::Response& response);

}  // namespace npuc

#endif  // NPUC_SERVER_HTTP_ROUTES_H_
