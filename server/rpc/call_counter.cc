#include "server/rpc/call_counter.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "npuc/rpc/status_details.pb.h"

namespace npuc::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;

std::string ReasonOf(const grpc::Status& status) {
  rpc::Status details;
  details.ParseFromString(status.error_details());
  rpc::ErrorInfo info;
  for (const auto& any : details.details()) {
    if (any.type_url() == "type.googleapis.com/google.rpc.ErrorInfo" &&
        info.ParseFromString(any.value())) {
      return info.reason();
    }
  }
  return "NONE";
}

class CallCounter : public grpc::experimental::Interceptor {
 public:
  CallCounter(observe::Metrics* metrics, absl::string_view method)
      : metrics_(metrics), method_(method) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      metrics_->Add(
          observe::Metric::kRpcCalls,
          {method_, absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()))},
          1);
      if (!status.ok()) metrics_->Add(observe::Metric::kRpcErrors, {ReasonOf(status)}, 1);
    }
    methods->Proceed();
  }

 private:
  observe::Metrics* const metrics_;
  const absl::string_view method_;  // of the registered method, which outlives its calls
};

class CallCounters : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallCounters(observe::Metrics* metrics) : metrics_(metrics) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    absl::string_view method = info->method();
    method.remove_prefix(method.rfind('/') + 1);
    return new CallCounter(metrics_, method);
  }

 private:
  observe::Metrics* const metrics_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CountCalls(
    observe::Metrics* metrics) {
  return std::make_unique<CallCounters>(metrics);
}

}  // namespace npuc::rpc
