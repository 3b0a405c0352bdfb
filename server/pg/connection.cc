#include "server/pg/connection.h"

#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

constexpr char kFaultUrl[] = "npuc/pg/fault";
constexpr char kSqlStateUrl[] = "npuc/pg/sqlstate";
constexpr size_t kMaxNotices = 1000;

// Types by their number in pg_type.
constexpr Oid kBool = 16, kBytea = 17, kInt8 = 20, kInt2 = 21, kInt4 = 23, kText = 25,
              kFloat8 = 701, kVarchar = 1043, kByteaArray = 1001, kTextArray = 1009,
              kInt8Array = 1016;

struct ResultCloser {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ResultCloser>;
struct ConnectionCloser {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};

absl::Status Failure(Fault fault, absl::string_view sql_state, absl::string_view what) {
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  if (fault == Fault::kRefused) code = absl::StatusCode::kInternal;
  if (sql_state == "53100") code = absl::StatusCode::kResourceExhausted;  // disk_full
  absl::Status status(
      code, absl::StrCat("PostgreSQL: ", Printable(absl::StripAsciiWhitespace(what), 1024)));
  status.SetPayload(kFaultUrl, absl::Cord(absl::StrCat(static_cast<int>(fault))));
  status.SetPayload(kSqlStateUrl, absl::Cord(sql_state));
  return status;
}

// The fault of a statement that the server has answered.
Fault FaultOfSqlState(absl::string_view state) {
  // read_only_sql_transaction: the server is a standby now. cannot_connect_now. 57P01 and 57P02
  // end sessions, also in the middle of a commit.
  if (state == "25006" || state == "57P03") return Fault::kLost;
  if (state == "57P01" || state == "57P02" || absl::StartsWith(state, "08")) return Fault::kUnknown;
  const std::array<absl::string_view, 3> again = {"40001", "40P01", "55P03"};
  if (std::find(again.begin(), again.end(), state) != again.end()) return Fault::kRetry;
  return absl::StartsWith(state, "53") ? Fault::kRetry : Fault::kRefused;
}

void AppendInt32(int32_t value, std::string& out) {
  const uint32_t bytes = htobe32(static_cast<uint32_t>(value));
  out.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
}
void AppendInt64(uint64_t value, std::string& out) {
  const uint64_t bytes = htobe64(value);
  out.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
}
template <typename Int>
Int ReadBigEndian(absl::string_view bytes) {
  NPUC_CHECK(bytes.size() >= sizeof(Int));
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(Int); ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return static_cast<Int>(value);
}

// One dimension from 1 on, as array_recv reads it.
std::string ArrayHeader(Oid element, size_t size, bool has_null) {
  std::string out;
  AppendInt32(size == 0 ? 0 : 1, out);
  AppendInt32(has_null ? 1 : 0, out);
  AppendInt32(static_cast<int32_t>(element), out);
  if (size == 0) return out;
  AppendInt32(static_cast<int32_t>(size), out);
  AppendInt32(1, out);
  return out;
}

void AppendElement(absl::string_view bytes, std::string& out) {
  AppendInt32(static_cast<int32_t>(bytes.size()), out);
  out.append(bytes.data(), bytes.size());
}

struct Encoded {
  Oid type = kText;
  bool is_null = false;
  std::string owned = {};  // unless `bytes` are the caller's
  absl::string_view bytes = {};
};

struct Encode {
  Encoded operator()(std::nullptr_t) const { return {.type = 0, .is_null = true}; }
  Encoded operator()(bool value) const {
    return {.type = kBool, .owned = std::string(1, value ? '\1' : '\0')};
  }
  Encoded operator()(int64_t value) const {
    Encoded encoded{.type = kInt8};
    AppendInt64(static_cast<uint64_t>(value), encoded.owned);
    return encoded;
  }
  Encoded operator()(double value) const {
    Encoded encoded{.type = kFloat8};
    AppendInt64(std::bit_cast<uint64_t>(value), encoded.owned);
    return encoded;
  }
  Encoded operator()(absl::string_view value) const { return {.type = kText, .bytes = value}; }
  Encoded operator()(Bytes value) const { return {.type = kBytea, .bytes = value.bytes}; }
  Encoded operator()(const TextArray& values) const {
    Encoded encoded{.type = kTextArray, .owned = ArrayHeader(kText, values.size(), false)};
    for (const std::string& value : values) AppendElement(value, encoded.owned);
    return encoded;
  }
  Encoded operator()(const OptionalTextArray& values) const {
    Encoded encoded{.type = kTextArray, .owned = ArrayHeader(kText, values.items.size(), true)};
    for (const std::optional<std::string>& value : values.items) {
      if (value.has_value()) {
        AppendElement(*value, encoded.owned);
      } else {
        AppendInt32(-1, encoded.owned);
      }
    }
    return encoded;
  }
  Encoded operator()(const IntArray& values) const {
    Encoded encoded{.type = kInt8Array, .owned = ArrayHeader(kInt8, values.size(), false)};
    for (const int64_t value : values) {
      AppendInt32(sizeof(value), encoded.owned);
      AppendInt64(static_cast<uint64_t>(value), encoded.owned);
    }
    return encoded;
  }
  Encoded operator()(const BytesArray& values) const {
    Encoded encoded{.type = kByteaArray, .owned = ArrayHeader(kBytea, values.size(), false)};
    for (const Bytes& value : values) AppendElement(value.bytes, encoded.owned);
    return encoded;
  }
};

// Waits until the socket is ready for one of `events`. False: the deadline came first.
bool WaitFor(int socket, int events, SteadyTime deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd one = {.fd = socket, .events = static_cast<short>(events), .revents = 0};
    const int ready = poll(&one, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

SteadyTime DeadlineAfter(absl::Duration limit) {
  return SteadyTimeAfter(absl::ToChronoNanoseconds(limit));
}

absl::string_view SqlState(const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state == nullptr ? "" : state;
}

std::string PayloadOf(const absl::Status& status, const char* url) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  return payload.has_value() ? std::string(*payload) : "";
}

}  // namespace

Fault FaultOf(const absl::Status& status) {
  const std::string payload = PayloadOf(status, kFaultUrl);
  return payload.empty() ? Fault::kNone : static_cast<Fault>(payload[0] - '0');
}

std::string SqlStateOf(const absl::Status& status) { return PayloadOf(status, kSqlStateUrl); }

absl::Status CheckUrl(const std::string& url) {
  struct Closer {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
  };
  const std::unique_ptr<PQconninfoOption, Closer> parsed(PQconninfoParse(url.c_str(), nullptr));
  if (parsed == nullptr) {
    return absl::InvalidArgumentError(
        "--cluster is not a URL of PostgreSQL; give postgres://USER@HOST:PORT/DATABASE");
  }
  for (const PQconninfoOption* one = parsed.get(); one->keyword != nullptr; ++one) {
    const bool is_secret = absl::string_view(one->keyword) == "password" ||
                           absl::string_view(one->keyword) == "sslpassword";
    if (!is_secret || one->val == nullptr) continue;
    return absl::InvalidArgumentError(
        "--cluster has a password, which the list of processes shows to every user; leave it out, "
        "and give --cluster-secret-file FILE or PGPASSFILE");
  }
  return absl::OkStatus();
}

struct Rows::Impl {
  ResultPtr result;

  absl::string_view Field(size_t row, int column) const {
    NPUC_CHECK(row < static_cast<size_t>(PQntuples(result.get())));
    NPUC_CHECK(column >= 0 && column < PQnfields(result.get()));
    const int at = static_cast<int>(row);
    return {PQgetvalue(result.get(), at, column),
            static_cast<size_t>(PQgetlength(result.get(), at, column))};
  }
};

Rows::Rows() = default;
Rows::~Rows() = default;
Rows::Rows(Rows&& other) noexcept = default;
Rows& Rows::operator=(Rows&& other) noexcept = default;
Rows::Rows(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

size_t Rows::size() const {
  return impl_ == nullptr ? 0 : static_cast<size_t>(PQntuples(impl_->result.get()));
}
size_t Rows::affected() const {
  if (impl_ == nullptr) return 0;
  size_t count = 0;
  const absl::string_view text = PQcmdTuples(impl_->result.get());
  return absl::SimpleAtoi(text, &count) ? count : 0;
}
bool Rows::IsNull(size_t row, int column) const {
  impl_->Field(row, column);
  return PQgetisnull(impl_->result.get(), static_cast<int>(row), column) != 0;
}
bool Rows::Bool(size_t row, int column) const {
  const absl::string_view field = impl_->Field(row, column);
  NPUC_CHECK(PQftype(impl_->result.get(), column) == kBool && field.size() == 1);
  return field[0] != '\0';
}
int64_t Rows::Int(size_t row, int column) const {
  const absl::string_view field = impl_->Field(row, column);
  const Oid type = PQftype(impl_->result.get(), column);
  if (type == kInt2) return ReadBigEndian<int16_t>(field);
  if (type == kInt4) return ReadBigEndian<int32_t>(field);
  NPUC_CHECK(type == kInt8);
  return ReadBigEndian<int64_t>(field);
}
double Rows::Double(size_t row, int column) const {
  const absl::string_view field = impl_->Field(row, column);
  NPUC_CHECK(PQftype(impl_->result.get(), column) == kFloat8);
  return std::bit_cast<double>(ReadBigEndian<uint64_t>(field));
}
absl::string_view Rows::Text(size_t row, int column) const {
  const absl::string_view field = impl_->Field(row, column);
  const Oid type = PQftype(impl_->result.get(), column);
  NPUC_CHECK(type == kText || type == kBytea || type == kVarchar);
  return field;
}
std::vector<int64_t> Rows::Ints(size_t row, int column) const {
  absl::string_view field = impl_->Field(row, column);
  NPUC_CHECK(PQftype(impl_->result.get(), column) == kInt8Array);
  constexpr size_t kHeader = 5 * sizeof(int32_t);
  std::vector<int64_t> values;
  if (field.size() < kHeader) return values;  // of no dimension
  const auto count = ReadBigEndian<int32_t>(field.substr(3 * sizeof(int32_t)));
  field.remove_prefix(kHeader);
  for (int32_t i = 0; i < count; ++i) {
    NPUC_CHECK(ReadBigEndian<int32_t>(field) == sizeof(int64_t));
    field.remove_prefix(sizeof(int32_t));
    values.push_back(ReadBigEndian<int64_t>(field));
    field.remove_prefix(sizeof(int64_t));
  }
  return values;
}

struct Connection::Impl {
  std::unique_ptr<PGconn, ConnectionCloser> connection;
  bool broken = false;
  // A commit's wait for the standby was cut short: it is made here, and perhaps nowhere else.
  bool commit_in_doubt = false;
  std::vector<std::string> notices = {};

  static void OnNotice(void* self, const PGresult* result) {
    auto& impl = *static_cast<Impl*>(self);
    const absl::string_view state = SqlState(result);
    if (state == "01000" || state == "57P01") impl.commit_in_doubt = true;
    if (impl.notices.size() < kMaxNotices) impl.notices.emplace_back(PQresultErrorMessage(result));
  }

  absl::Status Break(Fault fault, absl::string_view what) {
    broken = true;
    return Failure(fault, "", what);
  }
  std::string LastError() const { return PQerrorMessage(connection.get()); }

  absl::Status Connect(const ConnectionOptions& options);
  absl::StatusOr<ResultPtr> Finish(SteadyTime deadline);
  absl::Status StatusOf(const PGresult& result);
};

absl::Status Connection::Impl::Connect(const ConnectionOptions& options) {
  const SteadyTime deadline = DeadlineAfter(options.connect_limit);
  const std::string seconds =
      absl::StrCat(std::max<int64_t>(2, absl::ToInt64Seconds(options.connect_limit)));
  // No peer may stay silent for long.
  std::vector<const char*> keys = {"dbname",           "application_name", "target_session_attrs",
                                   "connect_timeout",  "keepalives_idle",  "keepalives_interval",
                                   "keepalives_count", "tcp_user_timeout", "client_encoding"};
  std::vector<const char*> values = {options.url.c_str(),
                                     options.application.c_str(),
                                     "read-write",
                                     seconds.c_str(),
                                     "5",
                                     "2",
                                     "3",
                                     "5000",
                                     "UTF8"};
  if (!options.password.empty()) {
    keys.push_back("password");
    values.push_back(options.password.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  connection.reset(PQconnectStartParams(keys.data(), values.data(), /*expand_dbname=*/1));
  if (connection == nullptr) return Break(Fault::kLost, "no memory for a connection");
  PQsetNoticeReceiver(connection.get(), OnNotice, this);
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (PQstatus(connection.get()) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
    if (next == PGRES_POLLING_FAILED) break;
    // The socket may be another one after each step.
    const int events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!WaitFor(PQsocket(connection.get()), events, deadline)) {
      return Break(Fault::kLost, "no connection in time");
    }
    next = PQconnectPoll(connection.get());
  }
  if (next == PGRES_POLLING_OK && PQsetnonblocking(connection.get(), 1) == 0) {
    return absl::OkStatus();
  }
  return Break(Fault::kLost, LastError());
}

// After a statement was put into the buffer: sends it and takes all of its answer.
absl::StatusOr<ResultPtr> Connection::Impl::Finish(SteadyTime deadline) {
  ResultPtr last;
  while (true) {
    const int unsent = PQflush(connection.get());
    if (unsent < 0) return Break(Fault::kUnknown, LastError());
    while (unsent == 0 && PQisBusy(connection.get()) == 0) {
      ResultPtr result(PQgetResult(connection.get()));
      if (result == nullptr) {
        if (last == nullptr) return Break(Fault::kUnknown, LastError());
        if (PQstatus(connection.get()) == CONNECTION_BAD) broken = true;
        return last;
      }
      // The first error of a script counts.
      const bool is_error = last != nullptr && PQresultStatus(last.get()) == PGRES_FATAL_ERROR;
      if (!is_error) last = std::move(result);
    }
    if (!WaitFor(PQsocket(connection.get()), unsent > 0 ? POLLIN | POLLOUT : POLLIN, deadline)) {
      return Break(Fault::kUnknown, "no answer in time");
    }
    // Also while it sends: otherwise both sides could wait with full buffers.
    if (PQconsumeInput(connection.get()) == 0) return Break(Fault::kUnknown, LastError());
  }
}

absl::Status Connection::Impl::StatusOf(const PGresult& result) {
  const ExecStatusType status = PQresultStatus(&result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
    if (!std::exchange(commit_in_doubt, false)) return absl::OkStatus();
    return Break(Fault::kUnknown, "the wait for the standby was cut short");
  }
  const absl::string_view state = SqlState(&result);
  const std::string message = PQresultErrorMessage(&result);
  // libpq's own error, without a state: the connection went away.
  const Fault fault = state.empty() ? Fault::kUnknown : FaultOfSqlState(state);
  if (fault == Fault::kUnknown || fault == Fault::kLost) broken = true;
  return Failure(fault, state, message);
}

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ConnectionOptions& options) {
  auto impl = std::make_unique<Impl>();
  RETURN_IF_ERROR(impl->Connect(options));
  std::unique_ptr<Connection> connection(new Connection(std::move(impl)));
  // A setting would stay with the pooler's session, and meet another client: the role has them.
  if (options.is_pooled) return connection;
  // In the session, as a function's own setting is undone before its commit. No statement is long
  // enough to be worth compiling; the costs of plans that are turned off would ask for it. No
  // setting here needs more than an ordinary role.
  const absl::Status set = connection->RunScript(
      absl::StrCat("SET search_path = npuc; SET jit = off; SET synchronous_commit = ",
                   options.synchronous_commit ? "on" : "off"),
      options.connect_limit);
  if (!set.ok()) return Failure(Fault::kLost, SqlStateOf(set), set.message());
  return connection;
}

absl::StatusOr<Rows> Connection::Run(const char* sql, absl::Span<const Value> parameters,
                                     absl::Duration limit) {
  if (impl_->broken) return Failure(Fault::kLost, "", "the connection is over");
  std::vector<Encoded> encoded;
  for (const Value& value : parameters) encoded.push_back(std::visit(Encode(), value));
  std::vector<Oid> types;
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const Encoded& one : encoded) {
    const absl::string_view bytes = one.owned.empty() ? one.bytes : absl::string_view(one.owned);
    types.push_back(one.type);
    // An empty view may have no data, which would say NULL.
    values.push_back(one.is_null ? nullptr : bytes.empty() ? "" : bytes.data());
    lengths.push_back(static_cast<int>(bytes.size()));
  }
  const std::vector<int> formats(encoded.size(), 1);
  impl_->commit_in_doubt = false;
  if (PQsendQueryParams(impl_->connection.get(), sql, static_cast<int>(encoded.size()),
                        types.data(), values.data(), lengths.data(), formats.data(),
                        /*resultFormat=*/1) == 0) {
    return impl_->Break(Fault::kLost, impl_->LastError());
  }
  ASSIGN_OR_RETURN(ResultPtr result, impl_->Finish(DeadlineAfter(limit)));
  RETURN_IF_ERROR(impl_->StatusOf(*result));
  return Rows(std::make_unique<Rows::Impl>(Rows::Impl{.result = std::move(result)}));
}

absl::Status Connection::RunScript(const std::string& sql, absl::Duration limit) {
  if (impl_->broken) return Failure(Fault::kLost, "", "the connection is over");
  if (PQsendQuery(impl_->connection.get(), sql.c_str()) == 0) {
    return impl_->Break(Fault::kLost, impl_->LastError());
  }
  ASSIGN_OR_RETURN(const ResultPtr result, impl_->Finish(DeadlineAfter(limit)));
  return impl_->StatusOf(*result);
}

bool Connection::is_usable() const { return !impl_->broken; }

absl::StatusOr<std::vector<Notification>> Connection::WaitForNotifications(absl::Duration limit) {
  if (impl_->broken) return Failure(Fault::kLost, "", "the connection is over");
  PGconn* const connection = impl_->connection.get();
  WaitFor(PQsocket(connection), POLLIN, DeadlineAfter(limit));
  if (PQconsumeInput(connection) == 0) return impl_->Break(Fault::kLost, impl_->LastError());
  std::vector<Notification> notifications;
  while (PGnotify* const one = PQnotifies(connection)) {
    notifications.push_back({.channel = one->relname, .payload = one->extra});
    PQfreemem(one);
  }
  return notifications;
}

std::vector<std::string> Connection::TakeNotices() { return std::exchange(impl_->notices, {}); }

}  // namespace npuc::pg
