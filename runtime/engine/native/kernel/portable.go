package kernel

import "unsafe"

// portable computes everything in plain Go, for processors without kernels of their own. It also says what the assembly
// has to do: tests compare the two.
func portable() Set {
	var f functions
	for rows := 1; rows <= 8; rows++ {
		f.product[rows] = [3]func(*productArgs){
			1: func(a *productArgs) { product(a, rows, 1) },
			2: func(a *productArgs) { product(a, rows, 2) },
		}
	}
	f.correlate, f.line, f.transpose, f.transpose8 = correlate, line, transposeBlock(lanes), transposeBlock(8)
	elements(&f)
	channels(&f)
	taps(&f)
	portableHalves(&f)
	f.winograd = portableWinograd()
	return Set{
		Name: "portable", tiles: []int{8, 6, 4, 2}, line: []int{8, 6, 4, 2},
		vectors: 2, pairs: [2]int{3, 6}, step: 4 * lanes, block: 1,
		square: 16, f: f, exact: exactPortable(), peak: func(int) {},
	}
}

const lanes = 16 // values that every size is a multiple of

func ptr(p unsafe.Pointer, bytes int64) unsafe.Pointer { return unsafe.Add(p, bytes) }

func get(p unsafe.Pointer, bytes int64) float32 { return *(*float32)(unsafe.Add(p, bytes)) }

func vector(p unsafe.Pointer, bytes int64) *[lanes]float32 {
	return (*[lanes]float32)(unsafe.Add(p, bytes))
}

func product(a *productArgs, rows, vectors int) {
	var acc [8][2][lanes]float32
	for i := range min(rows, int(a.rows)) {
		for j := range vectors {
			c := vector(a.c, int64(i)*a.ldc+int64(j)*a.c2)
			switch a.mode {
			case fromC:
				acc[i][j] = *c
			case fromBias:
				for l := range c {
					acc[i][j][l] = get(a.bias, 4*int64(i))
				}
			case fromVector:
				acc[i][j] = *vector(a.bias, int64(j)*4*lanes)
			}
		}
	}
	var ao, bo int64
	for range a.outer {
		for range a.middle {
			for range a.k {
				for i := range min(rows, int(a.rows)) {
					w := get(a.a, ao+int64(i)*a.rs)
					for j := range vectors {
						b, sum := vector(a.b, bo+int64(j)*4*lanes), &acc[i][j]
						for l := range b {
							sum[l] += w * b[l]
						}
					}
				}
				ao, bo = ao+a.ks, bo+a.ldb
			}
			ao, bo = ao+a.am, bo+a.bm
		}
		ao, bo = ao+a.ao, bo+a.bo
	}
	for i := range min(rows, int(a.rows)) {
		for j := range vectors {
			c := vector(a.c, int64(i)*a.ldc+int64(j)*a.c2)
			for l, v := range acc[i][j] {
				if a.relu != 0 && v < 0 {
					v = 0
				}
				c[l] = v
			}
		}
	}
}

func line(a *productArgs) {
	for block := range int64(lineBlocks) {
		one := *a
		one.b, one.c, one.rows, one.rs = ptr(a.b, block*a.c2), ptr(a.c, block*4*lanes), 1, 0
		if a.mode == fromVector {
			one.bias = ptr(a.bias, block*4*lanes)
		}
		product(&one, 1, 1)
	}
}

func correlate(a *productArgs) {
	var ao, bo int64
	for range a.middle {
		for range a.k {
			for i := range int64(3) {
				x := vector(a.a, ao+i*a.rs)
				for j := range int64(6) {
					dy, sum := vector(a.b, bo+j*a.ldb), vector(a.c, (i*6+j)*4*lanes)
					for l := range sum {
						sum[l] += x[l] * dy[l]
					}
				}
			}
			ao, bo = ao+4*lanes, bo+4*lanes
		}
		ao, bo = ao+a.am, bo+a.bm
	}
}

func transposeBlock(side int64) func(*transposeArgs) {
	return func(a *transposeArgs) {
		for r := range side {
			for c := range side {
				*(*float32)(ptr(a.dst, c*a.ds+4*r)) = get(a.src, r*a.ss+4*c)
			}
		}
	}
}

func slice(p unsafe.Pointer, bytes int64) []float32 {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*float32)(p), bytes/4)
}
