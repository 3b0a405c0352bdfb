#include "server/observe/tracer.h"

#include <random>

#include "absl/strings/str_format.h"

namespace npuc::observe {
namespace {

uint64_t RandomDigits() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  uint64_t digits = 0;
  while (digits == 0) digits = random();
  return digits;
}

}  // namespace

std::string NewTraceId() { return absl::StrFormat("%016x%016x", RandomDigits(), RandomDigits()); }

std::string NewSpanId() { return absl::StrFormat("%016x", RandomDigits()); }

}  // namespace npuc::observe
