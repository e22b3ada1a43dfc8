package main

import (
	"fmt"
	"strings"
)

// neon collects the functions for arm64, and their declarations in Go.
type neon struct {
	text, stubs strings.Builder
	labels      int // of the function at work
	taken       int // general registers that it has
}

// generalRegister is a register by its name in the assembler of Go.
type generalRegister string

// Asm returns the name.
func (r generalRegister) Asm() string { return string(r) }

// generals lists the registers that functions use. The others belong to the linker and the runtime of Go, and to
// systems.
var generals = [...]generalRegister{
	"R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R19", "R20",
	"R21", "R22", "R23", "R24", "R25", "R26",
}

// files returns the assembly and the declarations.
func (a *neon) files() (text, stubs string) {
	head := generated + constraint
	return head + "\n#include \"textflag.h\"\n" + a.text.String(), head + "\npackage kernel\n" + a.stubs.String()
}

// function starts with all registers free.
func (a *neon) function(name, arguments string, body func(args register)) {
	name += "Neon"
	fmt.Fprintf(&a.stubs, stub, name, arguments)
	fmt.Fprintf(&a.text, "\n// func %s(args %s)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", name, arguments, name)
	a.labels, a.taken = 0, 0
	args := a.register()
	a.put("MOVD args+0(FP), %s", args)
	body(args)
	a.put("RET")
}

// put writes a line.
func (a *neon) put(format string, parts ...any) {
	a.text.WriteString("\t")
	fmt.Fprintf(&a.text, format, parts...)
	a.text.WriteString("\n")
}

// word writes an instruction that the assembler does not have.
func (a *neon) word(i instruction) { a.put("WORD $0x%08x // %s", i.word, i.text) }

// register panics if no register is free.
func (a *neon) register() register {
	if a.taken == len(generals) {
		panic("no register is left")
	}
	a.taken++
	return generals[a.taken-1]
}

func (a *neon) scope(body func()) {
	taken := a.taken
	body()
	a.taken = taken
}

func (a *neon) label(name string) string {
	a.labels++
	return fmt.Sprintf("%s%d", name, a.labels)
}

func (a *neon) mark(label string) { fmt.Fprintf(&a.text, "%s:\n", label) }

func (a *neon) field(args register, offset int) register {
	to := a.register()
	a.put("MOVD %d(%s), %s", offset, args, to)
	return to
}

func (a *neon) fieldOperand(args register, offset int) register { return a.field(args, offset) }

func (a *neon) copyRegister(r register) register {
	to := a.register()
	a.put("MOVD %s, %s", r, to)
	return to
}

func (a *neon) sumOf(x, y register) register {
	to := a.register()
	a.put("ADD %s, %s, %s", y, x, to)
	return to
}

func (a *neon) clear(r register) { a.put("MOVD $0, %s", r) }

// number makes an int an operand.
func number(x any) any {
	if n, ok := x.(int); ok {
		return fmt.Sprintf("$%d", n)
	}
	return x
}

func (a *neon) plus(by any, to ...register) {
	for _, r := range to {
		a.put("ADD %s, %s", number(by), r)
	}
}

func (a *neon) minus(by any, to register) { a.put("SUB %s, %s", number(by), to) }
func (a *neon) times(by, to register)     { a.put("MUL %s, %s", by, to) }
func (a *neon) compare(x register, y any) { a.put("CMP %s, %s", number(y), x) }
func (a *neon) jump(label string)         { a.put("B %s", label) }

func (a *neon) loadInt32(from place) register {
	to := a.register()
	a.put("MOVW %s, %s", from.Asm(), to)
	return to
}

func (a *neon) difference(x, y, to register) { a.put("SUB %s, %s, %s", y, x, to) }

func (a *neon) nextOffset(list register) register {
	to := a.register()
	a.put("MOVD.P 8(%s), %s", list, to)
	return to
}

func (a *neon) atListedOffset(base, list register, i int) place {
	p := a.field(list, 8*i)
	a.plus(base, p)
	return a.at(p, 0)
}

// rows changes base.
func (a *neon) rows(by register, n int) func(base register, f func(p place, i int)) {
	return func(base register, f func(p place, i int)) {
		for i := range n {
			f(a.at(base, 0), i)
			if i+1 < n {
				a.plus(by, base)
			}
		}
	}
}

func (a *neon) branch(c condition, label string) {
	a.put("%s %s", []string{below: "BLO", notBelow: "BHS", above: "BHI", notAbove: "BLS", equals: "BEQ"}[c], label)
}

func (a *neon) branchIfZero(r register, label string) { a.put("CBZ %s, %s", r, label) }

func (a *neon) loop(counter register, step int, body func()) {
	l := a.label("loop")
	a.mark(l)
	a.scope(body)
	a.put("SUBS $%d, %s", step, counter)
	a.put("BNE %s", l)
}

func (a *neon) at(base register, bytes int) place { return address{base, bytes} }

func (a *neon) offset(p place, bytes int) place {
	return address{p.(address).base, p.(address).bytes + bytes}
}

func (a *neon) indexed(base, offset register) place { return a.at(a.sumOf(base, offset), 0) }

// address is the place base + bytes.
type address struct {
	base  register
	bytes int
}

// Asm returns the operand of the assembler.
func (p address) Asm() string { return fmt.Sprintf("%d(%s)", p.bytes, p.base) }
