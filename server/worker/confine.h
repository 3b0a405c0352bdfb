#ifndef NPUC_SERVER_WORKER_CONFINE_H_
#define NPUC_SERVER_WORKER_CONFINE_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/posix.h"

namespace npuc::worker {

// The single walls, each a step that a process takes for itself and cannot take back. All run in
// processes of one thread. Errors tell the call that failed.

// Whom a worker runs as where the daemon is root: Debian's "nobody" and "nogroup".
inline constexpr uid_t kWorkerUid = 65534;
inline constexpr gid_t kWorkerGid = 65534;

// Runs `step` in a process of its own, made with these clone flags; what it returned, or why the
// process could not be made or did not end by itself.
absl::Status TryInChild(int clone_flags, const std::function<absl::Status()>& step);

// clone(2) as fork: no shared memory, SIGCHLD at the end. -1 and errno on failure. The caller has
// one thread, and the child calls nothing that wants glibc's fork handlers.
pid_t CloneProcess(int clone_flags);

// A user namespace in which the caller has all capabilities and the ids that a worker needs: for
// root 0 and the worker's, for others the own ones, which are called the worker's inside.
absl::Status EnterUserNamespace();

// A new file system in memory, attached nowhere: a descriptor of its root folder, made for the
// worker's user, 0700. Its content disappears with the last descriptor.
absl::StatusOr<cache::UniqueFd> MakeOutputFolder(uint64_t size_bytes, uint64_t max_files, uid_t uid,
                                                 gid_t gid);

// A new file system in memory, attached nowhere, with one file that all may read and map as code: a
// descriptor of its root folder.
absl::StatusOr<cache::UniqueFd> MakeFolderOf(const std::string& name, absl::string_view bytes);

// Makes an empty folder, that nobody can write, the root of the caller's view of files. Descriptors
// that it has, and those alone, lead out of it.
absl::Status EnterEmptyRoot();

// Sets a limit of the calling process, or leaves it where it is lower already.
absl::Status LimitResource(__rlimit_resource which, uint64_t soft, uint64_t hard);

// Gives up being root and all groups.
absl::Status BecomeWorkerUser();

// No capability can come back. Takes rights that BecomeWorkerUser gives up, so goes before it.
absl::Status DropBoundingSet();

// Gives up all capabilities, for good, and the right to be looked into by others of the same user.
absl::Status DropCapabilities();

// From now on files can be made and read below this folder alone, nothing can be executed, and on
// kernels that know it nothing outside can be connected to or signalled. UNIMPLEMENTED: no
// landlock.
absl::Status EnterLandlock(int folder_fd);

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_CONFINE_H_
