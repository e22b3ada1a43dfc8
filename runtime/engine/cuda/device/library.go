//go:build nvidia

package device

// #include <cuda.h>
// #include <dlfcn.h>
//
// // cuBLAS as far as it is used: its header is in a wheel of 400 MB, of which a build needs nothing else.
// typedef void *blas;
// static int (*blas_create)(blas *);
// static int (*blas_destroy)(blas);
// static int (*blas_stream)(blas, CUstream);
// static int (*blas_mode)(blas, int);
// static int (*blas_workspace)(blas, void *, size_t);
// static int (*blas_multiply)(blas, int, int, int, int, int, const float *, const float *, int, long long,
//                             const float *, int, long long, const float *, float *, int, long long, int);
//
// // -1 where there is no such library, or it lacks a function.
// static int blas_load(void) {
//   static int done, found;
//   if (done) return found;
//   done = 1, found = -1;
//   void *l = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
//   if (!l) l = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
//   if (!l) return found;
//   *(void **)&blas_create = dlsym(l, "cublasCreate_v2");
//   *(void **)&blas_destroy = dlsym(l, "cublasDestroy_v2");
//   *(void **)&blas_stream = dlsym(l, "cublasSetStream_v2");
//   *(void **)&blas_mode = dlsym(l, "cublasSetMathMode");
//   *(void **)&blas_workspace = dlsym(l, "cublasSetWorkspace_v2");
//   *(void **)&blas_multiply = dlsym(l, "cublasSgemmStridedBatched");
//   if (blas_create && blas_destroy && blas_stream && blas_mode && blas_workspace && blas_multiply) found = 0;
//   return found;
// }
//
// static int blas_open(blas *b, CUstream stream, CUdeviceptr work, size_t size) {
//   int status = blas_create(b);
//   if (!status) status = blas_stream(*b, stream); // which takes its workspace away
//   if (!status) status = blas_workspace(*b, (void *)work, size);
//   return status;
// }
//
// static int blas_close(blas b) { return blas_destroy(b); }
//
// // The modes are CUBLAS_PEDANTIC_MATH and CUBLAS_TF32_TENSOR_OP_MATH.
// static int blas_run(blas b, CUdeviceptr left, CUdeviceptr right, CUdeviceptr out, const long long *v) {
//   const float one = 1, add = v[12];
//   int status = blas_mode(b, v[13] ? 3 : 2);
//   if (status) return status;
//   return blas_multiply(b, v[6], v[7], v[0], v[1], v[2], &one, (const float *)left, v[3], v[8],
//                        (const float *)right, v[4], v[9], &add, (float *)out, v[5], v[10], v[11]);
// }
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// Workspace is what cuBLAS works in, taken with the first product. A buffer of our own, the same at every run, keeps
// its bits the same and lets its calls be captured.
const Workspace = 32 * disdel.MB

// refused is a call of cuBLAS that it did not take; results are numbered as cublas_api.h does.
func (d *device) refused(call string, status int) error {
	of := driver.BadLaunch
	if status == 3 { // CUBLAS_STATUS_ALLOC_FAILED
		of = driver.NoMemory
	}
	return &driver.Fault{
		Cause: of, Device: d.index, Call: call, Taken: d.taken, Said: fmt.Sprintf("cublasStatus_t %d", status),
	}
}

// hasLibrary tells whether cuBLAS is on this machine. An action has it where its image has.
func hasLibrary() bool { return C.blas_load() == 0 }

// openLibrary makes cuBLAS ready for the device's stream, once launches have a product.
func (d *device) openLibrary(launches []driver.Launch) error {
	asked := false
	for _, l := range launches {
		asked = asked || l.Product != nil
	}
	if !asked || d.blas != nil {
		return nil
	}
	if !hasLibrary() {
		return &driver.Fault{Cause: driver.BadLaunch, Device: d.index, Call: "product", Said: "libcublas is not here"}
	}
	work, err := d.take(Workspace)
	if err != nil {
		return err
	}
	var b C.blas
	if s := C.blas_open(&b, d.steps.c(), C.CUdeviceptr(work), C.size_t(Workspace)); s != 0 {
		return d.refused("open cuBLAS", int(s))
	}
	d.blas = unsafe.Pointer(b)
	return nil
}

// closeLibrary gives back what openLibrary took, but for memory, which goes with the context.
func (d *device) closeLibrary() {
	if d.blas != nil {
		C.blas_close(C.blas(d.blas))
	}
}

// multiply puts a product on the stream.
func (d *device) multiply(p driver.Product) error {
	number := func(v bool) C.longlong {
		if v {
			return 1
		}
		return 0
	}
	n := [...]C.longlong{
		C.longlong(p.M), C.longlong(p.N), C.longlong(p.K), C.longlong(p.LDA), C.longlong(p.LDB), C.longlong(p.LDC),
		number(p.TransA), number(p.TransB), C.longlong(p.StrideA), C.longlong(p.StrideB), C.longlong(p.StrideC),
		C.longlong(p.Batch), number(p.Add), number(p.TF32),
	}
	s := C.blas_run(C.blas(d.blas), C.CUdeviceptr(p.A), C.CUdeviceptr(p.B), C.CUdeviceptr(p.C), &n[0])
	if s != 0 {
		return d.refused("product", int(s))
	}
	return nil
}
