// Put into npucd by LD_PRELOAD: notes in a shared table what of each file was synced (power_cut.h).
// Stands between the program and libc, so it sees RocksDB's files and the blobs' alike. Changes
// nothing of what the calls do.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/fault/power_cut.h"

namespace npuc::fault {
namespace {

template <typename F>
F Real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

SyncedFile* MapTable() {
  const char* const path = std::getenv(kSyncTableEnv);
  if (path == nullptr) return nullptr;
  static const auto real_open = Real<int (*)(const char*, int, ...)>("open");
  const int fd = real_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  constexpr size_t kBytes = kSyncTableSlots * sizeof(SyncedFile);
  if (fd < 0 || ftruncate(fd, kBytes) != 0) abort();
  void* const map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) abort();
  close(fd);
  return static_cast<SyncedFile*>(map);
}

SyncedFile* Table() {
  static SyncedFile* const table = MapTable();
  return table;
}

std::mutex& TableMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

// The entry of an inode, made where there is none; *is_new tells. TableMutex held.
SyncedFile& Find(uint64_t inode, bool* is_new) {
  SyncedFile* const table = Table();
  for (uint64_t i = inode % kSyncTableSlots, tries = 0; tries < kSyncTableSlots;
       i = (i + 1) % kSyncTableSlots, ++tries) {
    if (table[i].inode != 0 && table[i].inode != inode) continue;
    *is_new = table[i].inode == 0;
    table[i].inode = inode;
    return table[i];
  }
  abort();  // a table too small would make a test that proves nothing
}

uint64_t FolderOf(int at, const char* path) {
  std::string folder(path);
  const size_t slash = folder.rfind('/');
  folder = slash == std::string::npos ? "." : folder.substr(0, slash + 1);
  struct stat info = {};
  return fstatat(at, folder.c_str(), &info, 0) == 0 ? info.st_ino : 0;
}

// After an open for writing. `was_there`: the name existed before.
void NoteOpen(int fd, int at, const char* path, int flags, bool was_there) {
  struct stat info = {};
  if (fd < 0 || Table() == nullptr || (flags & O_ACCMODE) == O_RDONLY) return;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::lock_guard<std::mutex> lock(TableMutex());
  bool is_new = false;
  SyncedFile& file = Find(info.st_ino, &is_new);
  if (!was_there) {
    file.synced_bytes = 0;
    file.is_named = 0;
    file.folder = FolderOf(at, path);
  } else if (is_new) {
    // It is from before this life: what it has is on the disk.
    file.synced_bytes = static_cast<uint64_t>(info.st_size);
    file.is_named = 1;
    file.folder = FolderOf(at, path);
  } else if ((flags & O_TRUNC) != 0) {
    file.synced_bytes = 0;
  }
}

void NoteFolderSynced(uint64_t folder) {
  const std::lock_guard<std::mutex> lock(TableMutex());
  for (uint64_t i = 0; i < kSyncTableSlots; ++i) {
    if (Table()[i].folder == folder) Table()[i].is_named = 1;
  }
}

// With kDeafToLogsEnv, the planted mistake: as though the log of a database were never synced.
bool IsDeafTo(int fd) {
  static const bool is_deaf = std::getenv(kDeafToLogsEnv) != nullptr;
  if (!is_deaf) return false;
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path, sizeof(path));
  return size > 4 && std::memcmp(path + size - 4, ".log", 4) == 0;
}

// What fd had before the sync began is on the disk once that has succeeded.
template <typename Sync>
int SyncAndNote(int fd, Sync sync) {
  struct stat before = {};
  const bool known = Table() != nullptr && fstat(fd, &before) == 0;
  const int result = sync(fd);
  if (result != 0 || !known || IsDeafTo(fd)) return result;
  if (S_ISDIR(before.st_mode)) {
    NoteFolderSynced(before.st_ino);
  } else if (S_ISREG(before.st_mode)) {
    const std::lock_guard<std::mutex> lock(TableMutex());
    bool is_new = false;
    SyncedFile& file = Find(before.st_ino, &is_new);
    if (is_new) file.is_named = 1;
    file.synced_bytes = static_cast<uint64_t>(before.st_size);
  }
  return result;
}

// The file has another name now. One that took the place of another is there after a crash, as
// itself or as the other; a wholly new name is as durable as the old one was.
void NoteRename(int at, const char* path, bool replaced) {
  struct stat info = {};
  if (Table() == nullptr || fstatat(at, path, &info, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISREG(info.st_mode)) return;
  const std::lock_guard<std::mutex> lock(TableMutex());
  bool is_new = false;
  SyncedFile& file = Find(info.st_ino, &is_new);
  if (is_new) file.synced_bytes = static_cast<uint64_t>(info.st_size);
  if (is_new || replaced) file.is_named = 1;
  file.folder = FolderOf(at, path);
}

bool IsThere(int at, const char* path) {
  struct stat info = {};
  return fstatat(at, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

int OpenAndNote(const char* name, int at, const char* path, int flags, mode_t mode) {
  const bool was_there = IsThere(at, path);
  const auto real = Real<int (*)(int, const char*, int, ...)>(name);
  const int fd = real(at, path, flags, mode);
  NoteOpen(fd, at, path, flags, was_there);
  return fd;
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace npuc::fault

using npuc::fault::IsThere;
using npuc::fault::ModeOf;
using npuc::fault::NoteRename;
using npuc::fault::OpenAndNote;
using npuc::fault::Real;
using npuc::fault::SyncAndNote;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAndNote("openat", AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAndNote("openat", AT_FDCWD, path, flags, mode);
}

int openat(int at, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAndNote("openat", at, path, flags, mode);
}

int openat64(int at, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAndNote("openat", at, path, flags, mode);
}

int fsync(int fd) { return SyncAndNote(fd, Real<int (*)(int)>("fsync")); }
int fdatasync(int fd) { return SyncAndNote(fd, Real<int (*)(int)>("fdatasync")); }

int rename(const char* from, const char* to) {
  const bool replaced = IsThere(AT_FDCWD, to);
  const int result = Real<int (*)(const char*, const char*)>("rename")(from, to);
  if (result == 0) NoteRename(AT_FDCWD, to, replaced);
  return result;
}

int renameat(int from_at, const char* from, int to_at, const char* to) {
  const bool replaced = IsThere(to_at, to);
  const int result =
      Real<int (*)(int, const char*, int, const char*)>("renameat")(from_at, from, to_at, to);
  if (result == 0) NoteRename(to_at, to, replaced);
  return result;
}

int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned int flags) {
  const bool replaced = IsThere(to_at, to);
  const int result = Real<int (*)(int, const char*, int, const char*, unsigned int)>("renameat2")(
      from_at, from, to_at, to, flags);
  if (result == 0) NoteRename(to_at, to, replaced);
  return result;
}

}  // extern "C"
