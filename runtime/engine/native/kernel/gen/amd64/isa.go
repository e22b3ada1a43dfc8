package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is what differs between the two instruction sets: the registers, and how a comparison selects.
type isa struct {
	name    string
	size    int    // bytes of a vector
	regs    int    // vector registers
	tiles   []int  // rows of the tiles of the matrix product, of values and of pairs
	tall    []int  // and of higher ones, of values alone
	vectors []int  // wide they are
	pairs   [2]int // rows of x and of dy that correlate takes
	block   int    // channels that a reduction holds in registers
}

var (
	avx512 = isa{
		name: "512", size: 64, regs: 32, tiles: []int{8, 6, 4, 2}, tall: []int{12}, vectors: []int{2, 1},
		pairs: [2]int{3, 6}, block: 8,
	}
	avx2 = isa{name: "256", size: 32, regs: 16, tiles: []int{6, 4, 2}, vectors: []int{2}, pairs: [2]int{2, 4}, block: 4}
)

var (
	zmm = []reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}
	ymm = []reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}
)

// v is vector register i.
func (s isa) v(i int) reg.VecPhysical {
	if s.size == 64 {
		return zmm[i]
	}
	return ymm[i]
}

// function starts an assembly function that takes a pointer to its arguments and returns the register that holds it.
func (s isa) function(name, doc string) reg.GPVirtual {
	TEXT(name+s.name, NOSPLIT, "func(args uintptr)")
	Doc(name + s.name + " " + doc)
	args := GP64()
	Load(Param("args"), args)
	return args
}

func done() {
	VZEROUPPER()
	RET()
}

// at is the memory at base+disp, and at base+index*scale+disp with an index.
func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

func indexed(base, index reg.Register, scale uint8, disp int) operand.Mem {
	return operand.Mem{Base: base, Index: index, Scale: scale, Disp: disp}
}

// field loads 8 bytes of the arguments into a new register.
func field(args reg.Register, offset int) reg.GPVirtual {
	r := GP64()
	MOVQ(at(args, offset), r)
	return r
}

func (s isa) zero(i int) {
	if s.size == 64 {
		VPXORQ(s.v(i), s.v(i), s.v(i))
		return
	}
	VXORPS(s.v(i), s.v(i), s.v(i))
}

func (s isa) load(m operand.Mem, i int)      { VMOVUPS(m, s.v(i)) }
func (s isa) store(i int, m operand.Mem)     { VMOVUPS(s.v(i), m) }
func (s isa) broadcast(m operand.Mem, i int) { VBROADCASTSS(m, s.v(i)) }

// operands are register numbers or memory; memory may only come first.
func (s isa) op(x any) operand.Op {
	switch x := x.(type) {
	case int:
		return s.v(x)
	case operand.Mem:
		return x
	default:
		panic(fmt.Sprintf("operand %T", x))
	}
}

func (s isa) add(a any, b, to int) { VADDPS(s.op(a), s.v(b), s.v(to)) }
func (s isa) mul(a any, b, to int) { VMULPS(s.op(a), s.v(b), s.v(to)) }
func (s isa) max(a any, b, to int) { VMAXPS(s.op(a), s.v(b), s.v(to)) }
func (s isa) min(a any, b, to int) { VMINPS(s.op(a), s.v(b), s.v(to)) }

// sub is to = b - a.
func (s isa) sub(a any, b, to int) { VSUBPS(s.op(a), s.v(b), s.v(to)) }

// div is to = b / a.
func (s isa) div(a any, b, to int) { VDIVPS(s.op(a), s.v(b), s.v(to)) }
func (s isa) sqrt(a, to int)       { VSQRTPS(s.v(a), s.v(to)) }

// fma is to += a * b.
func (s isa) fma(a any, b, to int) { VFMADD231PS(s.op(a), s.v(b), s.v(to)) }

// Comparisons of VCMPPS, ordered and quiet.
const (
	equal   = 0x00
	less    = 0x11
	greater = 0x1e
)

// keep is to = from where (a cmp b), else 0; scratch is overwritten.
func (s isa) keep(cmp uint64, a, b, from, to, scratch int) {
	if s.size == 64 {
		VCMPPS(operand.U8(cmp), s.v(b), s.v(a), reg.K1)
		VMOVAPS_Z(s.v(from), reg.K1, s.v(to))
		return
	}
	VCMPPS(operand.U8(cmp), s.v(b), s.v(a), s.v(scratch))
	VANDPS(s.v(scratch), s.v(from), s.v(to))
}

var labels int

// label is a name that no other label has.
func label(name string) string {
	labels++
	return fmt.Sprintf("%s%d", name, labels)
}

// loop repeats body while counter, above 0, is counted down by step.
func loop(counter reg.Register, step int, body func()) {
	l := label("loop")
	Label(l)
	body()
	SUBQ(operand.U32(step), counter)
	JNZ(operand.LabelRef(l))
}

// advance adds bytes to a pointer.
func advance(bytes int, pointers ...reg.Register) {
	for _, p := range pointers {
		ADDQ(operand.U32(bytes), p)
	}
}
