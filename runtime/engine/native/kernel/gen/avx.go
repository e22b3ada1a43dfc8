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

// avx writes the functions of one of the instruction sets of amd64.
type avx struct {
	*amd64
	name    string
	bytes   int    // of a vector
	regs    int    // vector registers
	tiles   []int  // rows of the tiles of the matrix product, of values and of pairs
	tall    []int  // and of higher ones, of values alone
	vectors []int  // wide they are
	pairs   [2]int // rows of x and of dy that correlate takes
	inBlock int    // channels that a reduction holds in registers
}

// amd64 collects functions of both instruction sets and their declarations in Go.
type amd64 struct {
	*build.Context
	stubs  strings.Builder
	labels int
}

// avx512 and avx2 write into the same files.
func (a *amd64) avx512() *avx {
	return &avx{
		amd64: a, name: "512", bytes: 64, regs: 32, tiles: []int{8, 6, 4, 2}, tall: []int{12}, vectors: []int{2, 1},
		pairs: [2]int{3, 6}, inBlock: 8,
	}
}

func (a *amd64) avx2() *avx {
	return &avx{
		amd64: a, name: "256", bytes: 32, regs: 16, tiles: []int{6, 4, 2}, vectors: []int{2},
		pairs: [2]int{2, 4}, inBlock: 4,
	}
}

// files returns the assembly and the declarations of all functions.
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

// function separates a number at the end of the name from the name of the instruction set.
func (s *avx) function(name, arguments string, body func(args register)) {
	if strings.ContainsAny(name[len(name)-1:], "0123456789") {
		name += "_"
	}
	name += s.name
	fmt.Fprintf(&s.stubs, stub, name, arguments)
	s.Function(name)
	s.Attributes(attr.NOSPLIT)
	s.SignatureExpr("func(args uintptr)")
	args := s.register()
	s.Load(s.Param("args"), args.(reg.Register))
	body(args)
	s.VZEROUPPER()
	s.RET()
}

// avo assigns the processor's general registers.

func (s *avx) register() register { return s.GP64() }
func (s *avx) scope(body func())  { body() }

func (s *avx) field(args register, offset int) register {
	return s.copyRegister(s.fieldOperand(args, offset))
}
func (s *avx) fieldOperand(args register, offset int) register { return memoryAt(args, offset) }

func (s *avx) copyRegister(r register) register {
	to := s.GP64()
	s.MOVQ(r, to)
	return to
}

func (s *avx) sumOf(x, y register) register {
	to := s.copyRegister(x)
	s.plus(y, to)
	return to
}

func (s *avx) clear(r register) { s.XORQ(r, r) }

// immediate makes an int an operand.
func immediate(x any) operand.Op {
	if n, ok := x.(int); ok {
		return operand.U32(n)
	}
	return x.(operand.Op)
}

func (s *avx) plus(by any, to ...register) {
	for _, r := range to {
		s.ADDQ(immediate(by), r)
	}
}

func (s *avx) minus(by any, to register) { s.SUBQ(immediate(by), to) }
func (s *avx) times(by, to register)     { s.IMULQ(by, to) }
func (s *avx) compare(x register, y any) { s.CMPQ(x, immediate(y)) }

// label counts for the whole file.
func (s *avx) label(name string) string {
	s.labels++
	return fmt.Sprintf("%s%d", name, s.labels)
}

func (s *avx) mark(label string) { s.Label(label) }
func (s *avx) jump(label string) { s.JMP(operand.LabelRef(label)) }

func (s *avx) loadInt32(from place) register {
	to := s.GP64()
	s.MOVLQSX(from, to)
	return to
}

func (s *avx) difference(x, y, to register) {
	s.MOVQ(x, to)
	s.SUBQ(y, to)
}

func (s *avx) nextOffset(list register) register {
	to := s.field(list, 0)
	s.plus(8, list)
	return to
}

func (s *avx) atListedOffset(base, list register, i int) place {
	return s.indexed(base, s.field(list, 8*i))
}

// rows has multiples of the distance in registers.
func (s *avx) rows(by register, n int) func(base register, f func(p place, i int)) {
	row := s.rowsOf(by, n)
	return func(base register, f func(p place, i int)) {
		for i := range n {
			f(row(base, i), i)
		}
	}
}

func (s *avx) branch(c condition, label string) {
	map[condition]func(operand.Op){below: s.JB, notBelow: s.JAE, above: s.JA, notAbove: s.JBE, equals: s.JE}[c](
		operand.LabelRef(label))
}

func (s *avx) branchIfZero(r register, label string) {
	if _, ok := r.(operand.Mem); ok {
		s.CMPQ(r, operand.U8(0))
		s.JE(operand.LabelRef(label))
		return
	}
	s.TESTQ(r, r)
	s.JZ(operand.LabelRef(label))
}

func (s *avx) loop(counter register, step int, body func()) {
	l := s.label("loop")
	s.mark(l)
	body()
	s.minus(step, counter)
	s.JNZ(operand.LabelRef(l))
}

// memoryAt is the memory at base + bytes; scaled adds index x scale.
func memoryAt(base register, bytes int) operand.Mem {
	return operand.Mem{Base: base.(reg.Register), Disp: bytes}
}

func scaled(base, index register, scale, bytes int) operand.Mem {
	return operand.Mem{Base: base.(reg.Register), Index: index.(reg.Register), Scale: uint8(scale), Disp: bytes}
}

func (s *avx) at(base register, bytes int) place   { return memoryAt(base, bytes) }
func (s *avx) offset(p place, bytes int) place     { return p.(operand.Mem).Offset(bytes) }
func (s *avx) indexed(base, offset register) place { return scaled(base, offset, 1, 0) }
