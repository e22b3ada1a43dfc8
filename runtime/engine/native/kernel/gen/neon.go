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
	return generated + constraint + "\n#include \"textflag.h\"\n" + a.text.String(), generated + constraint + "\npackage kernel\n" + a.stubs.String()
}

// function writes one that takes a pointer to its arguments, of a type of package kernel; body gets it in a register.
func (a *neon) function(name, arguments, doc string, body func(args register)) {
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

// get loads 8 bytes.
func (a *neon) get(base register, offset int, to register) {
	a.put("MOVD %d(%s), %s", offset, base, to)
}

// field loads 8 bytes of the arguments into a new register.
func (a *neon) field(args register, offset int) register {
	to := a.register()
	a.get(args, offset, to)
	return to
}

// fields is field for several.
func (a *neon) fields(args register, offsets ...int) []register {
	out := make([]register, len(offsets))
	for i, offset := range offsets {
		out[i] = a.field(args, offset)
	}
	return out
}

// move is to = from, and plus is to = x + by.
func (a *neon) move(from, to register)  { a.put("MOVD %s, %s", from, to) }
func (a *neon) plus(x, by, to register) { a.put("ADD %s, %s, %s", by, x, to) }

// add is to += by.
func (a *neon) add(by register, to ...register) {
	for _, r := range to {
		a.put("ADD %s, %s", by, r)
	}
}

// advance adds bytes to pointers.
func (a *neon) advance(bytes int, pointers ...register) {
	for _, p := range pointers {
		a.put("ADD $%d, %s", bytes, p)
	}
}

// loop repeats body while counter, above 0, is counted down by step.
func (a *neon) loop(counter register, step int, body func()) {
	l := a.label("loop")
	a.mark(l)
	body()
	a.put("SUBS $%d, %s", step, counter)
	a.put("BNE %s", l)
}

// stopAt goes to a label where n is not above a number, without signs.
func (a *neon) stopAt(number int, n register, to string) {
	a.put("CMP $%d, %s", number, n)
	a.put("BLS %s", to)
}
