#include "server/http/http_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/http/read.hpp>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace npuc::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using beast::bind_front_handler;

constexpr size_t kWriteBytes = 64 << 10;
constexpr size_t kFirstReadBytes = 4096;
// A stream with nothing to send is asked again this often, without a wake.
constexpr std::chrono::seconds kLookAgain{1};
constexpr std::chrono::seconds kLinger{2};
constexpr size_t kMaxDroppedBytes = 8 << 20;

// True if the client sent bytes that are not HTTP; false if it went away or took too long.
bool IsProtocolError(const beast::error_code& error) {
  return error.category() == make_error_code(http::error::end_of_stream).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

bool HasBody(const HttpResponse& response) {
  return response.status != 304 && response.status / 100 != 1;
}

std::string MakeHead(const HttpResponse& response, bool chunked, bool close) {
  std::string head = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", HttpReason(response.status), "\r\nDate: ",
      absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone()), "\r\n");
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  if (chunked) {
    absl::StrAppend(&head, "Transfer-Encoding: chunked\r\n");
  } else if (response.stream != nullptr && response.stream->size().has_value()) {
    absl::StrAppend(&head, "Content-Length: ", *response.stream->size(), "\r\n");
  } else if (response.stream == nullptr && HasBody(response)) {
    absl::StrAppend(&head, "Content-Length: ", response.body.size(), "\r\n");
  }
  absl::StrAppend(&head, close ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
  return head;
}

}  // namespace

HttpConnection::HttpConnection(HttpShared* shared, asio::ip::tcp::socket socket, std::string peer,
                               std::string endpoint, std::string place)
    : shared_(shared),
      limits_(shared->options.limits),
      peer_(std::move(peer)),
      endpoint_(std::move(endpoint)),
      place_(std::move(place)),
      wire_(std::move(socket)),
      executor_(wire_.get_executor()),
      timer_(executor_),
      waiting_since_(Clock::now()),
      buffer_(2 * limits_.header_bytes) {}

void HttpConnection::Start() {
  Error ignored;
  wire_.tcp.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  if (shared_->options.connections != nullptr) {
    entry_ = shared_->options.connections->Add(api::kHttp, endpoint_,
                                               wire_.tcp.socket().native_handle());
  }
  if (shared_->tls == nullptr) return AwaitRequest();
  const std::shared_ptr<SSL_CTX> files = shared_->tls->Current(absl::Now());
  // Asio's context takes a reference of its own; so does the connection's stream.
  SSL_CTX_up_ref(files.get());
  asio::ssl::context context(files.get());
  wire_.tls.emplace(wire_.tcp, context);
  wire_.tcp.expires_after(limits_.handshake);
  wire_.tls->async_handshake(asio::ssl::stream_base::server,
                             bind_front_handler(&HttpConnection::OnHandshake, shared_from_this()));
}

void HttpConnection::OnHandshake(Error error) {
  if (error) return Close();
  certificate_names_ = TlsContext::NamesOfPeer(wire_.tls->native_handle());
  AwaitRequest();
}

void HttpConnection::Close() {
  if (closed_) return;
  closed_ = true;
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  timer_.cancel();
  entry_.reset();
  wire_.tcp.close();
  stream_.reset();
  shared_->bodies_bytes -= std::exchange(body_room_, 0);
  shared_->connections.erase(self);
}

void HttpConnection::AwaitRequest() {
  if (closed_) return;
  waiting_since_ = Clock::now();
  // A client that pipelines has sent the next request already.
  if (buffer_.size() > 0) return OnFirstBytes({}, 0);
  wire_.tcp.expires_after(requests_ == 0 ? limits_.head : limits_.idle);
  wire_.async_read_some(buffer_.prepare(kFirstReadBytes),
                        bind_front_handler(&HttpConnection::OnFirstBytes, shared_from_this()));
}

void HttpConnection::OnFirstBytes(Error error, size_t count) {
  if (error || closed_) return Close();
  buffer_.commit(count);
  ++requests_;
  began_ = Clock::now();
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits_.header_bytes));
  // AdmitRequest decides if a body may come, and how large it may be.
  parser_->body_limit(std::numeric_limits<uint64_t>::max());
  wire_.tcp.expires_at(began_ + limits_.head);
  http::async_read_header(wire_, buffer_, *parser_,
                          bind_front_handler(&HttpConnection::OnHead, shared_from_this()));
}

void HttpConnection::OnHead(Error error, size_t /*count*/) {
  if (closed_) return;
  request_ = {};
  keep_alive_ = false;
  if (error && !IsProtocolError(error)) return Close();
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Refuse(431,
                  absl::StrCat("the request's head has over ", limits_.header_bytes, " bytes"));
  }
  if (error) return Refuse(400, error.message());
  const auto& head = parser_->get();
  minor_version_ = static_cast<int>(head.version() % 10);
  request_.method = std::string(head.method_string());
  request_.peer = peer_;
  request_.endpoint = endpoint_;
  request_.certificate_names = certificate_names_;
  for (const auto& field : head) {
    request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  const absl::StatusOr<HttpFraming> framing =
      CheckHead(request_.method, request_.headers, minor_version_);
  if (!framing.ok()) return Refuse(400, std::string(framing.status().message()));
  const absl::Status target = ParseTarget({head.target().data(), head.target().size()}, &request_);
  if (!target.ok()) return Refuse(400, std::string(target.message()));
  keep_alive_ = head.keep_alive();
  const std::string& expect = request_.Header("Expect");
  const bool expects_continue = absl::EqualsIgnoreCase(expect, "100-continue");
  if (!expect.empty() && !expects_continue) {
    return Refuse(417, "Expect knows 100-continue alone");
  }
  AdmitRequest(*framing, expects_continue && minor_version_ >= 1);
}

void HttpConnection::AdmitRequest(const HttpFraming& framing, bool expects_continue) {
  HttpAdmission admission;
  try {
    admission = shared_->options.admit(request_);
  } catch (const std::exception& failure) {
    return Refuse(500, failure.what());
  }
  if (admission.answer.has_value()) {
    // A body that was not read cannot be told from the next request.
    if (framing.has_body()) admission.answer->close = true;
    return Respond(*std::move(admission.answer));
  }
  handle_ = std::move(admission.handle);
  waiting_since_.reset();
  if (!framing.has_body()) return Run();
  if (framing.content_length > admission.max_body_bytes) {
    return Refuse(413, absl::StrCat("the body has ", framing.content_length, " bytes; at most ",
                                    admission.max_body_bytes, " are taken here"));
  }
  const size_t room = framing.chunked ? admission.max_body_bytes : framing.content_length;
  if (shared_->bodies_bytes + room > limits_.bodies_bytes) {
    return Refuse(503, "too many request bodies are under way; try again in a second");
  }
  shared_->bodies_bytes += room;
  body_room_ = room;
  parser_->body_limit(admission.max_body_bytes);
  wire_.tcp.expires_at(began_ + limits_.request);
  if (!expects_continue) return ReadBody();
  out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(wire_, asio::buffer(out_),
                    bind_front_handler(&HttpConnection::OnContinueSent, shared_from_this()));
}

void HttpConnection::OnContinueSent(Error error, size_t /*count*/) {
  if (error) return Close();
  ReadBody();
}

void HttpConnection::ReadBody() {
  if (closed_) return;
  http::async_read(wire_, buffer_, *parser_,
                   bind_front_handler(&HttpConnection::OnBody, shared_from_this()));
}

void HttpConnection::OnBody(Error error, size_t /*count*/) {
  if (closed_) return;
  if (error && !IsProtocolError(error)) return Close();
  if (error == http::error::body_limit) {
    return Refuse(413, absl::StrCat("the body has over ", body_room_, " bytes"));
  }
  if (error) return Refuse(400, error.message());
  request_.body = std::move(parser_->get().body());
  Run();
}

void HttpConnection::Run() {
  wire_.tcp.expires_never();
  asio::post(shared_->pool, [self = shared_from_this()] {
    HttpResponse response;
    try {
      response = self->handle_(self->request_);
    } catch (const std::exception& failure) {
      response = self->shared_->options.refuse(500, failure.what());
    }
    asio::post(self->executor_, [self, response = std::move(response)]() mutable {
      self->Respond(std::move(response));
    });
  });
}

void HttpConnection::Refuse(int status, const std::string& why) {
  HttpResponse response = shared_->options.refuse(status, why);
  response.close = true;
  Respond(std::move(response));
}

void HttpConnection::Respond(HttpResponse response) {
  if (closed_) return;
  handle_ = nullptr;
  request_.body = {};
  shared_->bodies_bytes -= std::exchange(body_room_, 0);
  const bool sends_body = request_.method != "HEAD" && HasBody(response);
  const bool endless = response.stream != nullptr && !response.stream->size().has_value();
  chunked_ = endless && minor_version_ >= 1;
  keep_alive_ = keep_alive_ && !response.close && !endless && requests_ < limits_.requests;
  out_ = MakeHead(response, chunked_, !keep_alive_);
  out_at_ = 0;
  last_piece_ = true;
  if (sends_body && response.stream != nullptr) {
    stream_ = std::move(response.stream);
    StartStream();
  } else if (sends_body) {
    out_ += response.body;
  }
  WriteOut();
}

void HttpConnection::StartStream() {
  last_piece_ = false;
  woken_ = false;
  stream_->SetWake([weak = weak_from_this(), executor = executor_] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->OnWake();
    });
  });
  if (stream_->size().has_value()) return;
  // Nothing more is to come from the client; a read ends when the client goes.
  sees_end_ = true;
  wire_.tcp.expires_never();
  wire_.async_read_some(asio::buffer(dropped_), [self = shared_from_this()](Error, size_t) {
    self->sees_end_ = false;
    self->Close();
  });
}

void HttpConnection::NextPiece() {
  woken_ = false;
  asio::post(shared_->pool, [self = shared_from_this(), stream = stream_]() mutable {
    absl::StatusOr<HttpStream::Piece> piece = absl::InternalError("an exception in a stream");
    try {
      piece = stream->Next();
    } catch (const std::exception&) {  // the client sees a body that is cut
    }
    stream.reset();
    asio::post(self->executor_,
               [self, piece = std::move(piece)]() mutable { self->OnPiece(std::move(piece)); });
  });
}

void HttpConnection::OnPiece(absl::StatusOr<HttpStream::Piece> piece) {
  if (closed_) return;
  if (!piece.ok()) return Close();
  last_piece_ = piece->last;
  out_.clear();
  out_at_ = 0;
  if (!piece->bytes.empty() && chunked_) {
    absl::StrAppend(&out_, absl::Hex(piece->bytes.size()), "\r\n", piece->bytes, "\r\n");
  } else {
    out_ = std::move(piece->bytes);
  }
  if (last_piece_ && chunked_) out_ += "0\r\n\r\n";
  if (!out_.empty()) return WriteOut();
  if (last_piece_) return EndRequest();
  woken_ ? NextPiece() : AwaitWake();
}

void HttpConnection::AwaitWake() {
  awaits_wake_ = true;
  timer_.expires_after(kLookAgain);
  timer_.async_wait([self = shared_from_this()](Error) {
    if (self->closed_ || !std::exchange(self->awaits_wake_, false)) return;
    self->NextPiece();
  });
}

void HttpConnection::OnWake() {
  woken_ = true;
  if (awaits_wake_) timer_.cancel();
}

void HttpConnection::WriteOut() {
  const size_t count = std::min(out_.size() - out_at_, kWriteBytes);
  wire_.tcp.expires_after(limits_.piece);
  asio::async_write(wire_, asio::buffer(out_.data() + out_at_, count),
                    bind_front_handler(&HttpConnection::OnWritten, shared_from_this()));
}

void HttpConnection::OnWritten(Error error, size_t count) {
  if (error || closed_) return Close();
  out_at_ += count;
  if (out_at_ < out_.size()) return WriteOut();
  wire_.tcp.expires_never();
  last_piece_ ? EndRequest() : NextPiece();
}

void HttpConnection::EndRequest() {
  stream_.reset();
  out_ = {};
  parser_.reset();
  keep_alive_ ? AwaitRequest() : Linger();
}

void HttpConnection::Linger() {
  waiting_since_ = Clock::time_point::min();  // the first to lose its place
  timer_.expires_after(kLinger);
  timer_.async_wait([self = shared_from_this()](Error error) {
    if (!error) self->Close();
  });
  if (!wire_.tls.has_value()) return DropInput();
  wire_.tls->async_shutdown([self = shared_from_this()](Error) { self->DropInput(); });
}

void HttpConnection::DropInput() {
  if (closed_) return;
  Error ignored;
  wire_.tcp.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  if (!sees_end_) OnDropped({}, 0);
}

void HttpConnection::OnDropped(Error error, size_t count) {
  dropped_bytes_ += count;
  if (error || closed_ || dropped_bytes_ > kMaxDroppedBytes) return Close();
  wire_.tcp.async_read_some(asio::buffer(dropped_),
                            bind_front_handler(&HttpConnection::OnDropped, shared_from_this()));
}

}  // namespace npuc::http
