// A device as a process: orders come on standard input, answers go to standard output. Numbers are little-endian and of 8 bytes.
//
//   A n            takes n bytes                                             answers the address, 0 where there are none
//   W at n data    writes
//   R at n         reads                                                     answers the bytes
//   L k x y z n a  launches kernel k of the table on x y z blocks, n bytes of arguments
//   G a b c ...    multiplies matrices: see driver.Product, whose fields follow in their order
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

// multiply is a product of matrices by columns, as BLAS has it.
static void multiply(void) {
  const float *a = (const float *)(uintptr_t)number(), *b = (const float *)(uintptr_t)number();
  float *c = (float *)(uintptr_t)number();
  uint64_t v[14];
  for (int i = 0; i < 14; i++) v[i] = number();
  uint64_t m = v[0], n = v[1], k = v[2], lda = v[3], ldb = v[4], ldc = v[5], turn_a = v[6], turn_b = v[7];
  for (uint64_t batch = 0; batch < v[11]; batch++, a += v[8], b += v[9], c += v[10]) {
    for (uint64_t i = 0; i < m; i++) {
      for (uint64_t j = 0; j < n; j++) {
        float sum = 0;
        for (uint64_t d = 0; d < k; d++) {
          float l = turn_a ? a[i * lda + d] : a[d * lda + i], r = turn_b ? b[d * ldb + j] : b[j * ldb + d];
          sum += v[13] ? tf32(l) * tf32(r) : l * r;
        }
        c[j * ldc + i] = v[12] ? c[j * ldc + i] + sum : sum;
      }
    }
  }
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
    } else if (order == 'G') {
      multiply();
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
