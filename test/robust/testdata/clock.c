// A clock that a test can move: loaded into redis-server, it adds the seconds that a file holds to the time of day.
// libfaketime cannot do this, since it allocates memory while Redis' allocator asks it for the time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

// The file holds eight bytes: the seconds to add, in this machine's byte order.
static volatile int64_t *offset;

__attribute__((constructor)) static void map(void) {
  const char *path = getenv("DISDEL_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *at = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) offset = at;
  close(file);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int failed = syscall(SYS_gettimeofday, now, zone);
  if (!failed && now && offset) now->tv_sec += *offset;
  return failed;
}
