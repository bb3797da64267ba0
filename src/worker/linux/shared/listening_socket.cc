#include "strobe/worker/shared/listening_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// How long a program waits for a worker whose backlog is full.
constexpr timeval kConnectTimeout{.tv_sec = 1, .tv_usec = 0};

// A path's directory, which stays the same one whatever happens to its name, and the name in it.
struct Place {
  int directory = -1;
  std::string name;
};

absl::Status Refused(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::StatusOr<Place> OpenPlace(const std::string& path, bool is_made) {
  const std::size_t slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash == 0 || slash + 1 == path.size())
    return absl::InvalidArgumentError(
        absl::StrCat("a worker's socket has an absolute path in a directory of its own: ", path));
  const std::string directory = path.substr(0, slash);
  if (is_made && mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return Refused(directory, errno);
  const Place place{
      .directory = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
      .name = path.substr(slash + 1)};
  if (place.directory < 0) return Refused(directory, errno);
  struct stat info {};
  if (fstat(place.directory, &info) != 0 || info.st_uid != geteuid() ||
      (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    close(place.directory);
    return absl::PermissionDeniedError(
        absl::StrCat(directory, " is not the user's own, with mode 0700"));
  }
  return place;
}

// By the directory's descriptor, so that the address is short, and in the directory that has been
// checked.
sockaddr_un AddressOf(const Place& place) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = absl::StrCat("/proc/self/fd/", place.directory, "/", place.name);
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

bool IsTooLong(const Place& place) {
  return place.name.size() > sizeof(sockaddr_un::sun_path) - sizeof("/proc/self/fd/2147483647/");
}

}  // namespace

std::string DefaultWorkerSocket() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return absl::StrCat(runtime, "/strobe/worker.sock");
  return absl::StrCat("/tmp/strobe-", geteuid(), "/worker.sock");
}

absl::StatusOr<WorkerSocket> ConnectToWorker(const std::string& path) {
  const absl::StatusOr<Place> place = OpenPlace(path, /*is_made=*/false);
  if (!place.ok()) return place.status();
  WorkerSocket own(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  absl::Status status;
  const sockaddr_un address = AddressOf(*place);
  if (own.is_open())
    setsockopt(own.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &kConnectTimeout,
               sizeof(kConnectTimeout));
  if (IsTooLong(*place) || !own.is_open() ||
      connect(own.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    status = Refused(absl::StrCat("no worker at ", path), errno);
  close(place->directory);
  if (status.ok()) status = own.CheckPeer();
  if (!status.ok()) return status;
  return own;
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : path_(std::move(other.path_)),
      directory_(std::exchange(other.directory_, -1)),
      lock_(std::exchange(other.lock_, -1)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) {
    unlinkat(directory_, path_.substr(path_.rfind('/') + 1).c_str(), 0);
    close(descriptor_);
  }
  if (lock_ >= 0) close(lock_);
  if (directory_ >= 0) close(directory_);
}

absl::StatusOr<ListeningSocket> ListeningSocket::Open(const std::string& path) {
  absl::StatusOr<Place> place = OpenPlace(path, /*is_made=*/true);
  if (!place.ok()) return place.status();
  ListeningSocket made;
  made.path_ = path;
  made.directory_ = place->directory;
  if (IsTooLong(*place)) return absl::InvalidArgumentError(absl::StrCat(path, " is too long"));
  // The kernel ends the lock with its holder, whatever that dies of.
  made.lock_ = openat(made.directory_, (place->name + ".lock").c_str(),
                      O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (made.lock_ < 0) return Refused(path + ".lock", errno);
  if (flock(made.lock_, LOCK_EX | LOCK_NB) != 0)
    return absl::AlreadyExistsError(absl::StrCat("another worker listens at ", path));
  if (unlinkat(made.directory_, place->name.c_str(), 0) != 0 && errno != ENOENT)
    return Refused(path, errno);
  const sockaddr_un address = AddressOf(*place);
  const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return Refused("socket", errno);
  made.descriptor_ = descriptor;
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(descriptor, kBacklog) != 0)
    return Refused(path, errno);
  return made;
}

absl::StatusOr<WorkerSocket> ListeningSocket::Accept() const {
  const int descriptor = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor >= 0) return WorkerSocket(descriptor);
  const int error = errno;
  const bool is_full = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  const std::string text = absl::StrCat("accept: ", std::strerror(error));
  if (is_full) return absl::ResourceExhaustedError(text);
  return absl::UnavailableError(text);
}

}  // namespace strobe::internal
