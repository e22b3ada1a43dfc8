package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// avx writes for one of the instruction sets of amd64.
type avx struct {
	*amd64
	name    string
	size    int    // bytes of a vector
	regs    int    // vector registers
	tiles   []int  // rows of the tiles of the matrix product, of values and of pairs
	tall    []int  // and of higher ones, of values alone
	vectors []int  // wide they are
	pairs   [2]int // rows of x and of dy that correlate takes
	block   int    // channels that a reduction holds in registers
}

// amd64 collects functions of both instruction sets and their declarations in Go.
type amd64 struct {
	*build.Context
	stubs  strings.Builder
	labels int
}

// avx512 and avx2 write to the same files.
func (a *amd64) avx512() *avx {
	return &avx{
		amd64: a, name: "512", size: 64, regs: 32, tiles: []int{8, 6, 4, 2}, tall: []int{12}, vectors: []int{2, 1},
		pairs: [2]int{3, 6}, block: 8,
	}
}

func (a *amd64) avx2() *avx {
	return &avx{
		amd64: a, name: "256", size: 32, regs: 16, tiles: []int{6, 4, 2}, vectors: []int{2},
		pairs: [2]int{2, 4}, block: 4,
	}
}

// files are the texts of the assembly and of the declarations, once all functions are there.
func (a *amd64) files() (text, stubs string, err error) {
	f, err := a.Result()
	if err == nil {
		err = pass.Compile.Execute(f)
	}
	if err != nil {
		return "", "", err
	}
	out, err := printer.NewGoAsm(printer.Config{}).Print(f)
	_, code, _ := strings.Cut(string(out), "\n\n")
	return generated + "\n" + code, generated + constraint + "\npackage kernel\n" + a.stubs.String(), err
}

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
func (s *avx) v(i int) reg.VecPhysical {
	if s.size == 64 {
		return zmm[i]
	}
	return ymm[i]
}

// function starts an assembly function that takes a pointer to its arguments, of a type of package kernel, and returns the
// register that holds it.
func (s *avx) function(name, arguments, doc string) reg.GPVirtual {
	name += s.name
	fmt.Fprintf(&s.stubs, stub, name, arguments)
	s.Function(name)
	s.Attributes(attr.NOSPLIT)
	s.SignatureExpr("func(args uintptr)")
	args := s.GP64()
	s.Load(s.Param("args"), args)
	return args
}

func (s *avx) done() {
	s.VZEROUPPER()
	s.RET()
}

// at is the memory at base+disp, and at base+index*scale+disp with an index.
func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

func indexed(base, index reg.Register, scale uint8, disp int) operand.Mem {
	return operand.Mem{Base: base, Index: index, Scale: scale, Disp: disp}
}

// field loads 8 bytes of the arguments into a new register.
func (s *avx) field(args reg.Register, offset int) reg.GPVirtual {
	r := s.GP64()
	s.MOVQ(at(args, offset), r)
	return r
}

func (s *avx) zero(i int) {
	if s.size == 64 {
		s.VPXORQ(s.v(i), s.v(i), s.v(i))
		return
	}
	s.VXORPS(s.v(i), s.v(i), s.v(i))
}

func (s *avx) load(m operand.Mem, i int)      { s.VMOVUPS(m, s.v(i)) }
func (s *avx) store(i int, m operand.Mem)     { s.VMOVUPS(s.v(i), m) }
func (s *avx) broadcast(m operand.Mem, i int) { s.VBROADCASTSS(m, s.v(i)) }

// operands are register numbers or memory; memory may only come first.
func (s *avx) op(x any) operand.Op {
	switch x := x.(type) {
	case int:
		return s.v(x)
	case operand.Mem:
		return x
	default:
		panic(fmt.Sprintf("operand %T", x))
	}
}

func (s *avx) add(a any, b, to int) { s.VADDPS(s.op(a), s.v(b), s.v(to)) }
func (s *avx) mul(a any, b, to int) { s.VMULPS(s.op(a), s.v(b), s.v(to)) }
func (s *avx) max(a any, b, to int) { s.VMAXPS(s.op(a), s.v(b), s.v(to)) }
func (s *avx) min(a any, b, to int) { s.VMINPS(s.op(a), s.v(b), s.v(to)) }

// sub is to = b - a.
func (s *avx) sub(a any, b, to int) { s.VSUBPS(s.op(a), s.v(b), s.v(to)) }

// div is to = b / a.
func (s *avx) div(a any, b, to int) { s.VDIVPS(s.op(a), s.v(b), s.v(to)) }
func (s *avx) sqrt(a, to int)       { s.VSQRTPS(s.v(a), s.v(to)) }

// fma is to += a * b.
func (s *avx) fma(a any, b, to int) { s.VFMADD231PS(s.op(a), s.v(b), s.v(to)) }

// keep is to = from where (a cmp b), else 0; scratch is overwritten.
func (s *avx) keep(c comparison, a, b, from, to, scratch int) {
	cmp := []uint64{equal: 0x00, less: 0x11, greater: 0x1e}[c] // ordered and quiet
	if s.size == 64 {
		s.VCMPPS(operand.U8(cmp), s.v(b), s.v(a), reg.K1)
		s.VMOVAPS_Z(s.v(from), reg.K1, s.v(to))
		return
	}
	s.VCMPPS(operand.U8(cmp), s.v(b), s.v(a), s.v(scratch))
	s.VANDPS(s.v(scratch), s.v(from), s.v(to))
}

// label is a name that no other label has.
func (s *avx) label(name string) string {
	s.labels++
	return fmt.Sprintf("%s%d", name, s.labels)
}

// loop repeats body while counter, above 0, is counted down by step.
func (s *avx) loop(counter reg.Register, step int, body func()) {
	l := s.label("loop")
	s.Label(l)
	body()
	s.SUBQ(operand.U32(step), counter)
	s.JNZ(operand.LabelRef(l))
}

// advance adds bytes to a pointer.
func (s *avx) advance(bytes int, pointers ...reg.Register) {
	for _, p := range pointers {
		s.ADDQ(operand.U32(bytes), p)
	}
}
