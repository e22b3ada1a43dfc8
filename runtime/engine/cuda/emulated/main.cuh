// A device as a process: orders come on standard input, answers go to standard output. Numbers are little-endian and of 8 bytes.
//
//   A n            takes n bytes                                             answers the address, 0 where there are none
//   W at n data    writes
//   R at n         reads                                                     answers the bytes
//   L k x y z n a  launches kernel k of the table on x y z blocks, n bytes of arguments
//   S              waits, which is nothing to wait for                       answers 0
//
// An allocation ends where a page ends, and the page behind it and the one before it cannot be read or written: a kernel that
// leaves its arrays ends the process.

static void quit(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(3);
}

static void take(void *to, size_t n) {
  if (n && fread(to, 1, n, stdin) != n) quit("an order breaks off");
}

static uint64_t number(void) {
  uint64_t v;
  take(&v, sizeof v);
  return v;
}

static void answer(const void *from, size_t n) {
  if (fwrite(from, 1, n, stdout) != n || fflush(stdout)) quit("an answer was not taken");
}

static void allocate(uint64_t limit, uint64_t *taken) {
  uint64_t n = number(), page = sysconf(_SC_PAGESIZE), whole = (n + page - 1) / page * page, at = 0;
  if (*taken + n <= limit) {
    char *p = mmap(0, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED && mprotect(p + page, whole, PROT_READ | PROT_WRITE) == 0) {
      at = (uint64_t)(uintptr_t)(p + page + whole - (n + 15) / 16 * 16);
      *taken += n;
      memset(p + page, 0xa5, whole); // a device's memory holds anything but zeros
    }
  }
  answer(&at, sizeof at);
}

static void launch(void) {
  static char args[4096];
  uint64_t k = number(), x = number(), y = number(), z = number(), n = number();
  if (k >= sizeof kernels / sizeof kernels[0]) quit("there is no such kernel");
  if (n != kernels[k].size) {
    fprintf(stderr, "%s takes %zu bytes of arguments, and got %zu\n", kernels[k].name, kernels[k].size, (size_t)n);
    exit(3);
  }
  take(args, n);
  for (uint64_t i = 0; i < x * y * z; i++) {
    uint64_t b = backwards ? x * y * z - 1 - i : i;
    blockIdx.x = b % x, blockIdx.y = b / x % y, blockIdx.z = b / x / y;
    kernels[k].launch(args);
  }
}

int main(int argc, char **argv) {
  uint64_t taken = 0, limit = argc > 1 ? strtoull(argv[1], 0, 10) : 0;
  backwards = argc > 2;
  for (;;) {
    int order = getchar();
    if (order == EOF) return 0;
    if (order == 'A') {
      allocate(limit, &taken);
    } else if (order == 'L') {
      launch();
    } else if (order == 'S') {
      uint64_t done = 0;
      answer(&done, sizeof done);
    } else if (order == 'W' || order == 'R') {
      uint64_t at = number(), n = number();
      if (order == 'W') take((void *)(uintptr_t)at, n);
      else answer((void *)(uintptr_t)at, n);
    } else {
      quit("there is no such order");
    }
  }
}
