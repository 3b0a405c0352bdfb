#ifndef NPUC_SERVER_WORKER_HOSTILE_ATTACKS_H_
#define NPUC_SERVER_WORKER_HOSTILE_ATTACKS_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc::worker {

// What an attack knows of the world outside: the best that an attacker could hope for.
struct AttackFacts {
  std::string canary;  // a file outside, absolute
  pid_t daemon = 0;
  pid_t zygote = 0;
  // Whether signals may be the deadly ones. Not in runs without a sandbox, where they would hit.
  bool deadly = true;
};

// True: it got what it wanted. False: it was refused, errno says how. Most never return inside a
// sandbox. None does harm where there is no sandbox, given !deadly.
using Attack = std::function<bool(const AttackFacts&)>;

// By name; hostile_test.cc has for each what must happen.
const std::map<std::string, Attack>& AllAttacks();

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_HOSTILE_ATTACKS_H_
