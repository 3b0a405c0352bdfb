#ifndef NPUC_COMPILER_CORE_BASE_STATUS_H_
#define NPUC_COMPILER_CORE_BASE_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Status plumbing. Abseil 20220623 has neither these macros nor absl/log's CHECK.

#define NPUC_CONCAT_INNER(a, b) a##b
#define NPUC_CONCAT(a, b) NPUC_CONCAT_INNER(a, b)

// Returns the status from the enclosing function where expr is not OK.
#define RETURN_IF_ERROR(expr)                  \
  do {                                         \
    ::absl::Status npuc_status = (expr);       \
    if (!npuc_status.ok()) return npuc_status; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()): x = *F(), or returns F()'s status.
#define ASSIGN_OR_RETURN(lhs, expr) \
  NPUC_ASSIGN_OR_RETURN_INNER(NPUC_CONCAT(npuc_statusor_, __LINE__), lhs, expr)
#define NPUC_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return std::move(tmp).status();    \
  lhs = *std::move(tmp)

// Aborts with file, line and condition. For our own invariants only: no user bytes may trip it.
#define NPUC_CHECK(cond)                                                                         \
  do {                                                                                           \
    if (!(cond)) {                                                                               \
      std::fprintf(stderr, "%s:%d: internal invariant broken: %s\n", __FILE__, __LINE__, #cond); \
      std::abort();                                                                              \
    }                                                                                            \
  } while (false)

#endif  // NPUC_COMPILER_CORE_BASE_STATUS_H_
