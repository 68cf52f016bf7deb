// Feeds a core to systemd-coredump as the unit systemd-coredump.socket does: coredump PID COMM EXE CORE.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(bool ok, const char *what) {
  if (!ok) {
    perror(what);
    exit(1);
  }
}

// pass sends a field, or the file descriptor of the core, which ends the message.
static void pass(int to, const std::string &field, int fd = -1) {
  iovec part = {const_cast<char *>(field.data()), field.size()};
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
  int pair[2];
  check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), "socketpair");
  pid_t child = fork();
  if (child == 0) {
    dup2(pair[0], 3);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", "1", 1);
    execl("/lib/systemd/systemd-coredump", "systemd-coredump", (char *)nullptr);
    _exit(127);
  }
  for (const char *field : {"MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1", "PRIORITY=2", "COREDUMP_UID=0", "COREDUMP_GID=0",
                            "COREDUMP_SIGNAL=11", "COREDUMP_TIMESTAMP=1795308347000000", "COREDUMP_RLIMIT=9223372036854775808",
                            "COREDUMP_HOSTNAME=shop", "COREDUMP_UNIT=inventory.service"})
    pass(pair[1], field);
  pass(pair[1], std::string("COREDUMP_PID=") + argv[1]);
  pass(pair[1], std::string("COREDUMP_COMM=") + argv[2]);
  pass(pair[1], std::string("COREDUMP_EXE=") + argv[3]);
  int core = open(argv[4], O_RDONLY);
  check(core >= 0, argv[4]);
  pass(pair[1], "", core);
  int status = 0;
  waitpid(child, &status, 0);
  return status != 0;
}
