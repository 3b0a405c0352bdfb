#ifndef NPUC_CLIENT_NPUC_REMOTE_COMMAND_DOCS_H_
#define NPUC_CLIENT_NPUC_REMOTE_COMMAND_DOCS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace npuc::remote {

// The manual page npuc-remote(1) in man(7)'s macros, and completion scripts, both from the options
// as the parser has them, so that neither can fall behind.
std::string ManPage(const CLI::App& app);
// `shell`: bash, zsh or fish; anything else gives "".
std::string CompletionScript(const CLI::App& app, absl::string_view shell);

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_COMMAND_DOCS_H_
