// What an emulated device does, whoever gives it orders: memory, kernels block by block, products.

// between takes n bytes that end where a page ends; the page behind them and the one before them cannot be read or written: a
// kernel that leaves its arrays ends the process. whole is how much the system gave, from *from on. 0: there is no more.
static char *between(size_t n, char **from, size_t *whole) {
  size_t page = sysconf(_SC_PAGESIZE), inner = (n + page - 1) / page * page;
  char *p = mmap(0, *whole = inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if ((*from = p) == MAP_FAILED || mprotect(p + page, inner, PROT_READ | PROT_WRITE)) return 0;
  memset(p + page, 0xa5, inner); // a device's memory holds anything but zeros
  return p + page + inner - (n + 15) / 16 * 16;
}

static void blocks(size_t k, uint64_t x, uint64_t y, uint64_t z, const void *args) {
  for (uint64_t i = 0; i < x * y * z; i++) {
    uint64_t b = backwards ? x * y * z - 1 - i : i;
    blockIdx.x = b % x, blockIdx.y = b / x % y, blockIdx.z = b / x / y;
    kernels[k].launch(args);
  }
}

// A product of matrices by columns, as BLAS has it: see driver.Product.
struct multiplication {
  const float *a, *b;
  float *c;
  uint64_t m, n, k, lda, ldb, ldc, turn_a, turn_b, step_a, step_b, step_c, count, add, tf32;
};

static void multiply(const struct multiplication *p) {
  const float *a = p->a, *b = p->b;
  float *c = p->c;
  for (uint64_t i = 0; i < p->count; i++, a += p->step_a, b += p->step_b, c += p->step_c) {
    for (uint64_t row = 0; row < p->m; row++) {
      for (uint64_t column = 0; column < p->n; column++) {
        float sum = 0, *to = c + column * p->ldc + row;
        for (uint64_t d = 0; d < p->k; d++) {
          float l = p->turn_a ? a[row * p->lda + d] : a[d * p->lda + row];
          float r = p->turn_b ? b[d * p->ldb + column] : b[column * p->ldb + d];
          sum += p->tf32 ? tf32(l) * tf32(r) : l * r;
        }
        *to = p->add ? *to + sum : sum;
      }
    }
  }
}
