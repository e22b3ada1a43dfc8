// A device as a process: orders come on standard input, answers go to standard output. Numbers are little-endian and of 8 bytes.
//
//   A n            takes n bytes                                             answers the address, 0 where there are none
//   W at n data    writes
//   R at n         reads                                                     answers the bytes
//   L k x y z n a  launches kernel k of the table on x y z blocks, n bytes of arguments
//   G a b c ...    multiplies matrices: see driver.Product, whose fields follow in their order
//   S              waits, which is nothing to wait for                       answers 0

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
  uint64_t n = number(), at = 0;
  char *from;
  size_t whole;
  if (*taken + n <= limit && (at = (uint64_t)(uintptr_t)between(n, &from, &whole))) *taken += n;
  answer(&at, sizeof at);
}

static void product(void) {
  struct multiplication p;
  p.a = (const float *)(uintptr_t)number(), p.b = (const float *)(uintptr_t)number();
  p.c = (float *)(uintptr_t)number();
  uint64_t *const rest[] = {&p.m, &p.n, &p.k, &p.lda, &p.ldb, &p.ldc, &p.turn_a, &p.turn_b, &p.step_a, &p.step_b, &p.step_c,
                            &p.count, &p.add, &p.tf32};
  for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) *rest[i] = number();
  multiply(&p);
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
  blocks(k, x, y, z, args);
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
      product();
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
