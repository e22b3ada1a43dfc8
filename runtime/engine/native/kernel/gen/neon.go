package main

import (
	"fmt"
	"strings"
)

// neon is the text of functions, one after the other, and their declarations in Go.
type neon struct {
	text, stubs strings.Builder
	labels      int // of the function at work
	taken       int // general registers that it has
}

// general is a general register by its name in Go's assembler.
type general string

// Asm is the name.
func (r general) Asm() string { return string(r) }

// generals are the registers that functions use. Go's linker, its runtime and systems keep the others.
var generals = [...]general{
	"R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R19", "R20",
	"R21", "R22", "R23", "R24", "R25", "R26",
}

// files are the whole texts.
func (a *neon) files() (text, stubs string) {
	head := generated + constraint
	return head + "\n#include \"textflag.h\"\n" + a.text.String(), head + "\npackage kernel\n" + a.stubs.String()
}

// function writes one that takes a pointer to its arguments, of a type of package kernel; body gets it in a register.
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

// word writes an instruction that the assembler does not know.
func (a *neon) word(i instruction) { a.put("WORD $0x%08x // %s", i.word, i.text) }

// register is one that nobody has.
func (a *neon) register() register {
	if a.taken == len(generals) {
		panic("no register is left")
	}
	a.taken++
	return generals[a.taken-1]
}

// scope gives back what registers body takes.
func (a *neon) scope(body func()) {
	taken := a.taken
	body()
	a.taken = taken
}

// label is a name that no other label of the function has; mark is where it stands.
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

func (a *neon) held(args register, offset int) register { return a.field(args, offset) }

func (a *neon) copyOf(r register) register {
	to := a.register()
	a.put("MOVD %s, %s", r, to)
	return to
}

func (a *neon) sum(x, y register) register {
	to := a.register()
	a.put("ADD %s, %s, %s", y, x, to)
	return to
}

func (a *neon) clear(r register) { a.put("MOVD $0, %s", r) }

// number is one as an operand; registers are operands.
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

func (a *neon) number(from place) register {
	to := a.register()
	a.put("MOVW %s, %s", from.Asm(), to)
	return to
}

func (a *neon) difference(x, y, to register) { a.put("SUB %s, %s, %s", y, x, to) }

func (a *neon) following(list register) register {
	to := a.register()
	a.put("MOVD.P 8(%s), %s", list, to)
	return to
}

func (a *neon) listed(base, list register, i int) place {
	p := a.field(list, 8*i)
	a.plus(base, p)
	return a.at(p, 0)
}

// rows moves base.
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

func (a *neon) ifZero(r register, label string) { a.put("CBZ %s, %s", r, label) }

func (a *neon) loop(counter register, step int, body func()) {
	l := a.label("loop")
	a.mark(l)
	a.scope(body)
	a.put("SUBS $%d, %s", step, counter)
	a.put("BNE %s", l)
}

func (a *neon) at(base register, bytes int) place { return address{base, bytes} }

func (a *neon) behind(p place, bytes int) place {
	return address{p.(address).base, p.(address).bytes + bytes}
}

func (a *neon) indexed(base, offset register) place { return a.at(a.sum(base, offset), 0) }

// address is memory so many bytes behind a register.
type address struct {
	base  register
	bytes int
}

// Asm is how Go's assembler writes it.
func (p address) Asm() string { return fmt.Sprintf("%d(%s)", p.bytes, p.base) }
