#ifndef NPUC_SERVER_NATIVE_LIBRARY_CALLS_H_
#define NPUC_SERVER_NATIVE_LIBRARY_CALLS_H_

#include <functional>
#include <string>

#include "absl/types/span.h"
#include "compiler_core/base/native_wire.h"

namespace npuc::native {

// Loads the library at `path` and makes the calls, each of them twice; an answer with a problem
// where the library lacks a function, returns an error, sets a shape out of bounds, writes beside a
// result or gives two results for one call. Runs code of the user's: for a process that is shut in.
// The library can do to this process what it likes, so the answer is to be checked by its reader.
// `at` is called with each stage before it begins.
NativeAnswer CallLibrary(const std::string& path, absl::Span<const NativeCall> calls,
                         const std::function<void(NativeOutcome::Stage)>& at);

}  // namespace npuc::native

#endif  // NPUC_SERVER_NATIVE_LIBRARY_CALLS_H_
