// Feeds a core to systemd-coredump as systemd does, and prints the entry for the journal, in the
// journal's native protocol: coredump PID COMM EXE CORE. It takes the places of the journal and of the
// unit systemd-coredump.socket, so it needs a mount namespace with an empty /run/systemd/journal.
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(bool ok, const char *what) {
  if (!ok) {
    perror(what);
    exit(1);
  }
}

// pass sends text, or the end of the message if it is empty, with a file descriptor unless it is -1.
static void pass(int to, const std::string &text, int fd) {
  iovec part = {const_cast<char *>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message = {};
  if (fd < 0) {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
  } else {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  check(sendmsg(to, &message, 0) >= 0, "sendmsg");
}

int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  int journal = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];
  sockaddr_un name = {AF_UNIX, "/run/systemd/journal/socket"};
  check(!bind(journal, (sockaddr *)&name, sizeof name), name.sun_path);
  chmod(name.sun_path, 0666);
  check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), "socketpair");
  int size = 8 << 20;
  setsockopt(journal, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  pid_t child = fork();
  if (child == 0) {
    dup2(pair[0], 3);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", "1", 1);
    execl("/lib/systemd/systemd-coredump", "systemd-coredump", (char *)nullptr);
    _exit(127);
  }
  const char *fields[] = {"COREDUMP_UID=0", "COREDUMP_GID=0", "COREDUMP_SIGNAL=11",
                          "COREDUMP_TIMESTAMP=1795308347000000", "COREDUMP_RLIMIT=9223372036854775808",
                          "COREDUMP_HOSTNAME=shop", "COREDUMP_UNIT=inventory.service", "PRIORITY=2"};
  for (const char *field : fields)
    pass(pair[1], field, -1);
  pass(pair[1], std::string("COREDUMP_PID=") + argv[1], -1);
  pass(pair[1], std::string("COREDUMP_COMM=") + argv[2], -1);
  pass(pair[1], std::string("COREDUMP_EXE=") + argv[3], -1);
  int core = open(argv[4], O_RDONLY);
  check(core >= 0, argv[4]);
  pass(pair[1], "", core);
  int status = 0;
  waitpid(child, &status, 0);
  fprintf(stderr, "systemd-coredump: %d\n", status);
  std::string buffer(8 << 20, 0);
  iovec part = {buffer.data(), buffer.size()};
  for (;;) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n = recvmsg(journal, &message, MSG_DONTWAIT);
    if (n < 0)
      break;
    if (cmsghdr *c = CMSG_FIRSTHDR(&message); c && c->cmsg_type == SCM_RIGHTS) { // a large entry is in a file
      int fd;
      memcpy(&fd, CMSG_DATA(c), sizeof fd);
      n = pread(fd, buffer.data(), buffer.size(), 0);
    }
    fwrite(buffer.data(), 1, n, stdout);
    puts("");
  }
}
