// CUDA's driver and cuBLAS as far as package device calls them, libcuda.so.1 and libcublas.so.13 in one, with a device that is the
// processor's: so that package is tested, its order of calls, its streams and its errors, where there is no GPU. Nothing is done
// before somebody waits for it: a stream is a list of what it was told, and an event is a place in one. Results are numbered as
// CUDA's headers do; a call that a driver refuses is refused.
//
// Variables of the process, which are read at every call; an empty one is as none:
//   DISDEL_EMULATED_FAULT   "NAME N RESULT": the N-th call of a function returns that result
//   DISDEL_EMULATED_EAGER   all streams but a context's first one do at once what they are told
//   DISDEL_EMULATED_MEMORY  of the device, in bytes; 1 GB where it is not set
//   DISDEL_EMULATED_ALONE   a second context is refused while there is one, as a device in exclusive mode does
#include <pthread.h>

enum { INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 46, BAD_DEVICE = 101, NO_CONTEXT = 201, BAD_TEXT = 218, BAD_HANDLE = 400,
       NOT_FOUND = 500, CAPTURED = 900 };

struct stream;
enum what { DO_COPY, DO_LAUNCH, DO_PRODUCT, DO_AWAIT, DO_GRAPH };
struct order {
  enum what what;
  void *to;
  const void *from; // of a launch the arguments, which are the order's
  size_t n;         // bytes, the kernel's number, or the place in another stream
  uint64_t x, y, z;
  struct stream *other;
  struct orders *graph;
  struct multiplication product;
};
struct orders { struct order *all; size_t n, room; };
struct piece { char *from; size_t whole, n; struct piece *next; };
struct driver_context { int gone, broken, streams; size_t taken; struct piece *pieces; };
struct stream { struct driver_context *of; int number; struct orders waiting; size_t before, done; struct orders *capture; };
struct event { struct stream *of; size_t at; };
struct function { size_t kernel; };
struct module { size_t n; char text[]; };

static pthread_mutex_t only = PTHREAD_MUTEX_INITIALIZER;
static int alive; // contexts
static __thread struct driver_context *here;

static int told(const char *name) {
  const char *said = getenv(name);
  return said && *said;
}

static int planned(const char *name) {
  static char plan[128];
  static int seen;
  const char *now = getenv("DISDEL_EMULATED_FAULT");
  char call[64];
  int at, code;
  if (!now) now = "";
  if (strcmp(now, plan)) snprintf(plan, sizeof plan, "%s", now), seen = 0;
  if (sscanf(now, "%63s %d %d", call, &at, &code) != 3 || strcmp(call, name) || ++seen != at) return 0;
  if (here && code >= 700 && code < 800) here->broken = code; // a context whose kernel went wrong is of no more use
  return code;
}

static void leave(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }

// Every function begins with one of these: one call at a time.
#define CALL(name)                                                                     \
  pthread_mutex_t *held_ __attribute__((cleanup(leave))) = &only;                      \
  pthread_mutex_lock(held_);                                                           \
  int failed_ = planned(name);                                                         \
  if (failed_) return failed_
#define IN_CONTEXT(name)                                                               \
  CALL(name);                                                                          \
  if (!here || here->gone) return NO_CONTEXT;                                          \
  if (here->broken) return here->broken
#define ON_STREAM(name, s)                                                             \
  IN_CONTEXT(name);                                                                    \
  if (!(s) || (s)->of != here) return BAD_HANDLE

static void run_until(struct stream *s, size_t at);

static void perform(const struct order *o) {
  switch (o->what) {
  case DO_COPY: memcpy(o->to, o->from, o->n); break;
  case DO_LAUNCH: blocks(o->n, o->x, o->y, o->z, o->from); break;
  case DO_PRODUCT: multiply(&o->product); break;
  case DO_AWAIT: run_until(o->other, o->n); break;
  case DO_GRAPH:
    for (size_t i = 0; i < o->graph->n; i++) perform(&o->graph->all[i]);
  }
}

static void run_until(struct stream *s, size_t at) {
  while (s->done < at) perform(&s->waiting.all[s->done++ - s->before]);
  if (s->done == s->before + s->waiting.n) s->before = s->done, s->waiting.n = 0;
}

static void append(struct orders *l, struct order o) {
  if (l->n == l->room) l->all = realloc(l->all, (l->room = 2 * l->room + 16) * sizeof o);
  l->all[l->n++] = o;
}

// tell puts an order on a stream, or into what is captured of it.
static int tell(struct stream *s, struct order o) {
  if (s->capture && (o.what == DO_AWAIT || o.what == DO_GRAPH)) return CAPTURED;
  append(s->capture ? s->capture : &s->waiting, o);
  if (!s->capture && s->number > 0 && told("DISDEL_EMULATED_EAGER")) run_until(s, s->before + s->waiting.n);
  return 0;
}

int cuInit(unsigned flags) { CALL("cuInit"); return 0; }
int cuDeviceGetCount(int *n) { CALL("cuDeviceGetCount"); *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { CALL("cuDeviceGet"); *d = i; return i == 0 ? 0 : BAD_DEVICE; }
int cuDeviceGetName(char *to, int n, int d) { CALL("cuDeviceGetName"); snprintf(to, n, "emulated"); return 0; }
int cuDeviceGetUuid(char *to, int d) { CALL("cuDeviceGetUuid"); memset(to, 7, 16); return 0; }

static size_t memory(void) {
  const char *said = getenv("DISDEL_EMULATED_MEMORY");
  return said ? strtoull(said, 0, 10) : 1 << 30;
}

int cuDeviceTotalMem_v2(size_t *n, int d) { CALL("cuDeviceTotalMem_v2"); *n = memory(); return 0; }

int cuDeviceGetAttribute(int *v, int what, int d) {
  CALL("cuDeviceGetAttribute");
  *v = what == 75 ? 8 : 0; // the major number of the compute capability, and everything else
  return 0;
}

int cuCtxCreate_v2(struct driver_context **c, unsigned flags, int d) {
  CALL("cuCtxCreate_v2");
  if (alive && told("DISDEL_EMULATED_ALONE")) return NO_DEVICE;
  here = *c = calloc(1, sizeof **c); // and never given back: a thread may still have it
  alive++;
  return 0;
}

int cuCtxSetCurrent(struct driver_context *c) { CALL("cuCtxSetCurrent"); here = c; return c && c->gone ? NO_CONTEXT : 0; }

int cuCtxDestroy_v2(struct driver_context *c) {
  CALL("cuCtxDestroy_v2");
  if (!c || c->gone) return NO_CONTEXT;
  for (struct piece *p = c->pieces, *next; p; p = next) next = p->next, munmap(p->from, p->whole), free(p);
  c->gone = 1, alive--;
  return 0;
}

static int piece(size_t n, void **at) {
  struct piece *p = calloc(1, sizeof *p);
  *at = between(n, &p->from, &p->whole);
  p->n = n, p->next = here->pieces, here->pieces = p;
  return *at ? 0 : NO_MEMORY;
}

int cuMemAlloc_v2(void **at, size_t n) {
  IN_CONTEXT("cuMemAlloc_v2");
  if (here->taken + n > memory()) return NO_MEMORY;
  here->taken += n;
  return piece(n, at);
}

int cuMemGetInfo_v2(size_t *left, size_t *all) {
  IN_CONTEXT("cuMemGetInfo_v2");
  *all = memory(), *left = *all - here->taken;
  return 0;
}

int cuMemHostAlloc(void **at, size_t n, unsigned flags) { IN_CONTEXT("cuMemHostAlloc"); return piece(n, at); }
int cuMemFreeHost(void *at) { IN_CONTEXT("cuMemFreeHost"); return at ? 0 : INVALID; } // it goes with the context

int cuModuleLoadData(struct module **m, const char *text) {
  IN_CONTEXT("cuModuleLoadData");
  size_t n = strlen(text) + 1;
  void *at;
  if (!strstr(text, ".target sm_")) return BAD_TEXT;
  if (piece(sizeof **m + n, &at)) return NO_MEMORY;
  *m = at, (*m)->n = n;
  memcpy((*m)->text, text, n);
  return 0;
}

// The kernel must be in the text that was loaded, with as many bytes of arguments as the processor's has.
int cuModuleGetFunction(struct function **f, const struct module *m, const char *name) {
  static size_t found[sizeof kernels / sizeof kernels[0]]; // how long the text was that had it: it is not read twice
  IN_CONTEXT("cuModuleGetFunction");
  size_t k = 0;
  while (k < sizeof kernels / sizeof kernels[0] && strcmp(kernels[k].name, name)) k++;
  if (k == sizeof kernels / sizeof kernels[0]) return NOT_FOUND;
  if (found[k] != m->n) {
    char argument[128];
    snprintf(argument, sizeof argument, "%s_param_0[", name);
    const char *at = strstr(m->text, argument);
    if (!at || strtoul(at + strlen(argument), 0, 10) != kernels[k].size) return NOT_FOUND;
    found[k] = m->n;
  }
  *f = malloc(sizeof **f);
  (*f)->kernel = k;
  return 0;
}

int cuStreamCreate(struct stream **s, unsigned flags) {
  IN_CONTEXT("cuStreamCreate");
  *s = calloc(1, sizeof **s);
  (*s)->of = here, (*s)->number = here->streams++;
  return 0;
}

int cuStreamSynchronize(struct stream *s) {
  ON_STREAM("cuStreamSynchronize", s);
  if (s->capture) return CAPTURED;
  run_until(s, s->before + s->waiting.n);
  return 0;
}

int cuEventCreate(struct event **e, unsigned flags) {
  IN_CONTEXT("cuEventCreate");
  *e = calloc(1, sizeof **e);
  return 0;
}

int cuEventRecord(struct event *e, struct stream *s) {
  ON_STREAM("cuEventRecord", s);
  e->of = s, e->at = s->before + s->waiting.n;
  return 0;
}

int cuStreamWaitEvent(struct stream *s, struct event *e, unsigned flags) {
  ON_STREAM("cuStreamWaitEvent", s);
  return e->of ? tell(s, (struct order){.what = DO_AWAIT, .other = e->of, .n = e->at}) : 0;
}

int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t n, struct stream *s) {
  ON_STREAM("cuMemcpyHtoDAsync_v2", s);
  return tell(s, (struct order){.what = DO_COPY, .to = to, .from = from, .n = n});
}

int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t n, struct stream *s) {
  ON_STREAM("cuMemcpyDtoHAsync_v2", s);
  return tell(s, (struct order){.what = DO_COPY, .to = to, .from = from, .n = n});
}

int cuLaunchKernel(struct function *f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, struct stream *s, void **args, void **extra) {
  ON_STREAM("cuLaunchKernel", s);
  if (!x || !y || !z || y > 65535 || z > 65535 || threads != THREADS || ty != 1 || tz != 1 || shared) return INVALID;
  void *copy = malloc(kernels[f->kernel].size);
  memcpy(copy, args[0], kernels[f->kernel].size);
  return tell(s, (struct order){.what = DO_LAUNCH, .from = copy, .n = f->kernel, .x = x, .y = y, .z = z});
}

int cuStreamBeginCapture_v2(struct stream *s, int mode) {
  ON_STREAM("cuStreamBeginCapture_v2", s);
  if (s->capture) return CAPTURED;
  s->capture = calloc(1, sizeof *s->capture);
  return 0;
}

int cuStreamEndCapture(struct stream *s, struct orders **g) {
  ON_STREAM("cuStreamEndCapture", s);
  if (!s->capture) return CAPTURED;
  *g = s->capture, s->capture = 0;
  return 0;
}

int cuGraphInstantiateWithFlags(struct orders **made, const struct orders *g, unsigned long long flags) {
  IN_CONTEXT("cuGraphInstantiateWithFlags");
  *made = calloc(1, sizeof **made);
  for (size_t i = 0; i < g->n; i++) append(*made, g->all[i]);
  return 0;
}

int cuGraphDestroy(struct orders *g) { IN_CONTEXT("cuGraphDestroy"); free(g->all), free(g); return 0; }
int cuGraphExecDestroy(struct orders *g) { IN_CONTEXT("cuGraphExecDestroy"); free(g->all), free(g); return 0; }

int cuGraphLaunch(struct orders *g, struct stream *s) {
  ON_STREAM("cuGraphLaunch", s);
  return tell(s, (struct order){.what = DO_GRAPH, .graph = g});
}

// cuBLAS. Its workspace is set behind its stream, which takes it away.
struct blas { struct stream *s; int mode; void *work; };

int cublasCreate_v2(struct blas **b) { CALL("cublasCreate_v2"); *b = calloc(1, sizeof **b); return 0; }
int cublasDestroy_v2(struct blas *b) { free(b); return 0; }
int cublasSetStream_v2(struct blas *b, struct stream *s) { CALL("cublasSetStream_v2"); b->s = s, b->work = 0; return 0; }
int cublasSetMathMode(struct blas *b, int mode) { b->mode = mode; return 0; }
int cublasSetWorkspace_v2(struct blas *b, void *at, size_t n) { b->work = at; return n ? 0 : 7; }

int cublasSgemmStridedBatched(struct blas *b, int turn_a, int turn_b, int m, int n, int k, const float *alpha, const float *l,
                              int lda, long long step_a, const float *r, int ldb, long long step_b, const float *beta, float *c,
                              int ldc, long long step_c, int count) {
  CALL("cublasSgemmStridedBatched");
  if (!b->s || !b->work || *alpha != 1 || (*beta != 0 && *beta != 1)) return 7;
  if (lda < (turn_a ? k : m) || ldb < (turn_b ? n : k) || ldc < m) return 7;
  if (b->mode != 2 && b->mode != 3) return 7; // a mode whose rounding nobody asked for
  return tell(b->s, (struct order){.what = DO_PRODUCT, .product = {l, r, c, m, n, k, lda, ldb, ldc, turn_a, turn_b, step_a, step_b,
                                   step_c, count, *beta != 0, b->mode == 3}});
}
