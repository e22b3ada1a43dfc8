#!/usr/bin/env bash
# Makes libcuda.a of CUDA's header: libcuda.sh HEADER FOLDER. It has every function of the driver's library, each a jump to where
# that library has it once disdel_cuda_init has loaded it; before, and where there is no such library, they return "not
# initialised". So a program that is linked with it starts everywhere. cuInit itself does nothing: gorgonia.org/cu calls it before
# main, and ends the program where it fails.
set -euo pipefail

header=$1
folder=$2
names=$(grep -oE '\bcu[A-Z][A-Za-z0-9]*(_v[0-9]+)?(_ptds|_ptsz)?\b' "$header" | sort -u | grep -vE '^(cuInit)$')
{
  cat <<'C'
#include <dlfcn.h>
#include <stddef.h>

static int missing(void) { return 3; } // CUDA_ERROR_NOT_INITIALIZED

int cuInit(unsigned int flags) { return (void)flags, 0; }

static const char *const names[] = {
C
  for name in $names; do printf '  "%s",\n' "$name"; done
  cat <<'C'
};
enum { count = sizeof names / sizeof names[0] };
__attribute__((visibility("hidden"))) void *disdel_cuda_table[count] = {[0 ... count - 1] = (void *)missing};

// -1 where there is no driver; else what its cuInit returns. A second call does it again only after a failure.
int disdel_cuda_init(void) {
  static int ready;
  if (ready) return 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return -1;
  int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(library, "cuInit");
  if (!init) return -1;
  int status = init(0);
  if (status) return status;
  for (size_t i = 0; i < count; i++) {
    void *there = dlsym(library, names[i]);
    if (there) disdel_cuda_table[i] = there;
  }
  ready = 1;
  return 0;
}

#if defined(__x86_64__)
#define JUMP(name, i) __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ": jmp *disdel_cuda_table+8*" #i "(%rip)\n")
#elif defined(__aarch64__)
#define JUMP(name, i) __asm__(".text\n.globl " name "\n.type " name ", %function\n" name ": adrp x16, disdel_cuda_table+8*" #i \
  "\nldr x16, [x16, #:lo12:disdel_cuda_table+8*" #i "]\nbr x16\n")
#else
#error "GPUs are supported on x86-64 and 64-bit Arm alone"
#endif
C
  i=0
  for name in $names; do
    printf 'JUMP("%s", %d);\n' "$name" "$i"
    i=$((i + 1))
  done
} >"$folder/libcuda.c"
cc -O1 -fPIC -c -o "$folder/libcuda.o" "$folder/libcuda.c"
rm -f "$folder/libcuda.a"
ar rcs "$folder/libcuda.a" "$folder/libcuda.o"
rm "$folder/libcuda.o"
