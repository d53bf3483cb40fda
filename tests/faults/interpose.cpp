// A library for LD_PRELOAD that counts the calls a program makes on files below the folder NORMLAB_FAULT_FOLDER, writes
// them down, and lets one of them fail or kills the program before it.
//
// A program that loads libtorch takes far longer to start than to train a few steps, so one start serves many runs:
// when the program first looks at the folder it stops and reads requests from standard input, one per line:
//   CALL ACTION LOG ERRORS
// CALL is the number of the call, from 1, or 0 for none. ACTION is "kill", or the errno with which the call fails, with
// a "+" also all later calls that write. LOG gets a line per call: its name, errno or 0, and its arguments; "-": none.
// ERRORS gets the standard error. A child continues from there as the program would; its wait status is printed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Plan {
  std::string folder = environment("NORMLAB_FAULT_FOLDER") + "/";
  std::string action;
  long call = 0;
  int log = -1;
  std::atomic<long> count = 0;
  bool started = false;
};
Plan& plan() {
  static Plan& value = *new Plan;  // never destroyed: destructors of the program still write
  return value;
}

// The function that this library hides.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int descriptor) {
  char name[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), name, sizeof name);
  return size < 0 ? "" : std::string(name, static_cast<size_t>(size));
}
std::string path_of(int folder, const char* path) {
  if (path[0] == '/') return path;
  if (folder != AT_FDCWD) return path_of(folder) + "/" + path;
  char here[PATH_MAX];
  return ::getcwd(here, sizeof here) ? std::string(here) + "/" + path : path;
}

int open_to_append(const std::string& path) {
  const long descriptor =
      ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) std::abort();
  return static_cast<int>(descriptor);
}

// Returns in a child for each request, never in the program that was started.
void serve() {
  Plan& p = plan();
  p.started = true;
  std::string log, errors;
  while (std::cin >> p.call >> p.action >> log >> errors) {
    const pid_t child = ::fork();
    if (child < 0) std::abort();
    if (child == 0) {
      if (log != "-") p.log = open_to_append(log);
      ::dup2(open_to_append(errors), STDERR_FILENO);
      ::close(STDOUT_FILENO);
      return;
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::cout << status << std::endl;
  }
  ::_exit(0);
}

bool is_inside(const std::string& path) {
  const bool inside =
      plan().folder.size() > 1 && (path + "/").starts_with(plan().folder) && !path.ends_with(" (deleted)");
  if (inside && !plan().started) serve();
  return inside;
}

std::string hex(std::string_view bytes) {
  static constexpr const char* digits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    out += digits[static_cast<unsigned char>(byte) >> 4];
    out += digits[static_cast<unsigned char>(byte) & 15];
  }
  return out;
}

// Runs a call that is on a file below the folder, unless it is the one to fail, and writes it down. `failure` is what
// the call returns when it fails.
template <class Result, class Body>
Result counted(const std::string& described, bool writes, Result failure, const Body& body) {
  Plan& p = plan();
  const long number = ++p.count;
  const bool lasting = p.action.ends_with("+") && writes && p.call > 0 && number > p.call;
  if (number == p.call && p.action == "kill") ::kill(::getpid(), SIGKILL);
  Result result = failure;
  if (number == p.call || lasting)
    errno = std::atoi(p.action.c_str());
  else
    result = body();
  const int code = errno;
  if (p.log >= 0) {
    const size_t name = described.find(' ');
    const std::string line =
        described.substr(0, name) + " " + std::to_string(result == failure ? code : 0) + described.substr(name) + "\n";
    if (::syscall(SYS_write, p.log, line.data(), line.size()) < 0) std::abort();
  }
  errno = code;
  return result;
}

bool exists(const std::string& path) {
  struct stat facts {};
  return ::syscall(SYS_newfstatat, AT_FDCWD, path.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
}

template <class Body>
int open_counted(const std::string& path, int flags, const Body& body) {
  if (!is_inside(path)) return body();
  const bool creates = (flags & O_CREAT) && !exists(path);
  const char* name = creates ? "create " : flags & O_TRUNC ? "empty " : "open ";
  return counted(name + path, flags & (O_WRONLY | O_RDWR), -1, body);
}

mode_t mode_in(va_list arguments) { return static_cast<mode_t>(va_arg(arguments, int)); }

}  // namespace

#define READ_MODE                                                               \
  va_list arguments;                                                            \
  va_start(arguments, flags);                                                   \
  const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? mode_in(arguments) : 0; \
  va_end(arguments)

extern "C" {

// Not counted, but a program looks before it opens anything. libtorch has a std::filesystem of its own, which calls the
// older names.
int stat(const char* path, struct stat* facts) noexcept {
  is_inside(path_of(AT_FDCWD, path));
  return next<int(const char*, struct stat*)>("stat")(path, facts);
}
int lstat(const char* path, struct stat* facts) noexcept {
  is_inside(path_of(AT_FDCWD, path));
  return next<int(const char*, struct stat*)>("lstat")(path, facts);
}
int __xstat(int version, const char* path, struct stat* facts) noexcept {
  is_inside(path_of(AT_FDCWD, path));
  return next<int(int, const char*, struct stat*)>("__xstat")(version, path, facts);
}
int __lxstat(int version, const char* path, struct stat* facts) noexcept {
  is_inside(path_of(AT_FDCWD, path));
  return next<int(int, const char*, struct stat*)>("__lxstat")(version, path, facts);
}

int open(const char* path, int flags, ...) {
  READ_MODE;
  return open_counted(path_of(AT_FDCWD, path), flags,
                      [&] { return next<int(const char*, int, ...)>("open")(path, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  READ_MODE;
  return open_counted(path_of(AT_FDCWD, path), flags,
                      [&] { return next<int(const char*, int, ...)>("open64")(path, flags, mode); });
}
int openat(int folder, const char* path, int flags, ...) {
  READ_MODE;
  return open_counted(path_of(folder, path), flags,
                      [&] { return next<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode); });
}
int openat64(int folder, const char* path, int flags, ...) {
  READ_MODE;
  return open_counted(path_of(folder, path), flags,
                      [&] { return next<int(int, const char*, int, ...)>("openat64")(folder, path, flags, mode); });
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  const auto body = [&] { return next<ssize_t(int, const void*, size_t)>("write")(descriptor, bytes, size); };
  const std::string path = path_of(descriptor);
  if (!is_inside(path)) return body();
  const bool appends = ::fcntl(descriptor, F_GETFL) & O_APPEND;
  struct stat facts {};
  ::fstat(descriptor, &facts);
  const off_t offset = appends ? facts.st_size : ::lseek(descriptor, 0, SEEK_CUR);
  return counted("write " + path + " " + std::to_string(offset) + " " + hex({static_cast<const char*>(bytes), size}),
                 true, ssize_t{-1}, body);
}
int ftruncate(int descriptor, off_t size) noexcept {
  const auto body = [&] { return next<int(int, off_t)>("ftruncate")(descriptor, size); };
  const std::string path = path_of(descriptor);
  return is_inside(path) ? counted("truncate " + path + " " + std::to_string(size), true, -1, body) : body();
}
int fsync(int descriptor) {
  const auto body = [&] { return next<int(int)>("fsync")(descriptor); };
  const std::string path = path_of(descriptor);
  return is_inside(path) ? counted("fsync " + path, true, -1, body) : body();
}
void* mmap(void* address, size_t size, int protection, int flags, int descriptor, off_t offset) noexcept {
  const auto body = [&] {
    return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size, protection, flags, descriptor, offset));
  };
  const std::string path = descriptor < 0 ? "" : path_of(descriptor);
  return is_inside(path) ? counted("mmap " + path, false, MAP_FAILED, body) : body();
}
void* mmap64(void* address, size_t size, int protection, int flags, int descriptor, off64_t offset) noexcept {
  return mmap(address, size, protection, flags, descriptor, offset);
}

int rename(const char* from, const char* to) noexcept {
  const auto body = [&] { return next<int(const char*, const char*)>("rename")(from, to); };
  const std::string source = path_of(AT_FDCWD, from), target = path_of(AT_FDCWD, to);
  return is_inside(target) ? counted("rename " + source + " " + target, true, -1, body) : body();
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  const auto body = [&] {
    return next<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from, to_folder, to,
                                                                                flags);
  };
  const std::string source = path_of(from_folder, from), target = path_of(to_folder, to);
  return is_inside(target) ? counted("rename " + source + " " + target, true, -1, body) : body();
}
int symlink(const char* target, const char* path) noexcept {
  const auto body = [&] { return next<int(const char*, const char*)>("symlink")(target, path); };
  const std::string full = path_of(AT_FDCWD, path);
  return is_inside(full) ? counted("symlink " + full + " " + target, true, -1, body) : body();
}
int mkdir(const char* path, mode_t mode) noexcept {
  const auto body = [&] { return next<int(const char*, mode_t)>("mkdir")(path, mode); };
  const std::string full = path_of(AT_FDCWD, path);
  return is_inside(full) ? counted("mkdir " + full, true, -1, body) : body();
}
int unlink(const char* path) noexcept {
  const auto body = [&] { return next<int(const char*)>("unlink")(path); };
  const std::string full = path_of(AT_FDCWD, path);
  return is_inside(full) ? counted("remove " + full, false, -1, body) : body();
}
int remove(const char* path) noexcept {
  const auto body = [&] { return next<int(const char*)>("remove")(path); };
  const std::string full = path_of(AT_FDCWD, path);
  return is_inside(full) ? counted("remove " + full, false, -1, body) : body();
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  const auto body = [&] { return next<int(int, const char*, int)>("unlinkat")(folder, path, flags); };
  const std::string full = path_of(folder, path);
  return is_inside(full) ? counted("remove " + full, false, -1, body) : body();
}

}  // extern "C"
