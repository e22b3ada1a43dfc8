package main

// Operands of instructions. Each back end has types of its own for them.
type (
	// register is a general register, or what held gives.
	register interface{ Asm() string }
	// vector is a register of values, or what source gives.
	vector interface{ Asm() string }
	// place is where values lie in memory.
	place interface{ Asm() string }
)

// machine is a back end: kernels are described by its methods, each of which writes the instructions of its processor.
// It has at least sixteen vectors beside each other. A vector has 16 or 8 values.
type machine interface {
	memory
	control
	lanes // of whole vectors
	walks
	multiplier
	halver
	shuffler

	// function writes a function that takes a pointer to its arguments, of a type of package kernel.
	function(name, arguments string, body func(args register))

	size() int             // bytes of a vector
	block() int            // channels that a reduction holds in vectors
	v(i int) vector        // vector i of 0 to 15
	constant(i int) vector // vector i from the end, for a value that is repeated: on arm64 it takes less than others

	singles(n int) []vector // for values that are repeated, all that are left behind n vectors
	after(n, k int) int     // the first vector behind n and so many singles

	zero(v vector)
	copy(to, from vector)
	max(to, x, y vector)                 // NaN where x is, or where y is of memory; another y is a limit
	min(to, x, y vector)                 // NaN where x is
	fma(to, x, y vector)                 // to += x y, rounded once
	fms(to, x, y vector)                 // to -= x y, rounded once
	affine(x, p, q, spare vector) vector // p x + q, rounded once, in x or in spare
	// keep is to = from where x compares to y, else 0; spare is overwritten.
	keep(c comparison, to, from, x, y, spare vector)

	// constants fills vectors, each by one of the values that lie one behind the other from an offset on.
	constants(base register, offset int, to ...vector)
	// next fills a vector by the value that a pointer has, and moves the pointer on.
	next(pointer register, to vector)
	// elements is n values that a pointer has, each as a vector that may be the last operand of fma.
	elements(pointer register, n int, spare vector) func(i int) vector
}

// lanes are instructions on so many values at a time.
type lanes interface {
	load(from place, to vector)
	store(v vector, to place)
	// source is values in memory for one instruction: amd64 reads them there, arm64 loads them now into a vector.
	source(from place, spare vector) vector
	add(to, x, y vector)
	sub(to, x, y vector) // x - y
	mul(to, x, y vector)
	div(to, x, y vector) // x / y
	sqrt(to, x vector)
}

// memory is general registers, and the addresses in them.
type memory interface {
	register() register
	scope(body func())                        // gives back the registers that body takes
	field(args register, offset int) register // 8 bytes of the arguments
	// held is a field that is only added, copied or compared: amd64 reads it then, arm64 loads it now.
	held(args register, offset int) register
	copyOf(r register) register
	sum(x, y register) register
	clear(r register)
	plus(by any, to ...register) // by is a number or a register
	minus(by any, to register)
	times(by, to register)
	difference(x, y, to register)
	number(from place) register       // int32 with its sign
	following(list register) register // 8 bytes, and the list moves on
	// listed is the place behind base that number i of a list of offsets says.
	listed(base, list register, i int) place
	// rows calls f with the places of n rows, so many bytes from one to the next, from base on, which may move.
	rows(by register, n int) func(base register, f func(p place, i int))

	at(base register, bytes int) place
	behind(p place, bytes int) place
	indexed(base, offset register) place
}

// control is where a function goes on.
type control interface {
	loop(counter register, step int, body func()) // while counter, above 0, is counted down
	label(name string) string                     // that no other has
	mark(label string)
	jump(label string)
	compare(x register, y any)
	branch(c condition, label string) // after compare
	ifZero(r register, label string)
}

// comparison is of values, false of NaN; condition is of numbers without signs.
type (
	comparison int
	condition  int
)

const (
	equal comparison = iota
	less
	greater
)

const (
	below condition = iota
	notBelow
	above
	notAbove
	equals
)

// walks are loops over memory: which registers move is the processor's.
type walks interface {
	each(e element, body func(p places, i int))
	// walk is a place in each array, so many bytes behind its start, that spans moves on.
	walk(offset register, arrays ...register) []place
	// moving is the places that pointers have, which may move with them; settle moves pointers to where the places are.
	moving(pointers ...register) (p []place, settle func())
	move(bytes int, p ...place)
	// spans does body while so many bytes are left, with the widest instructions first, and moves places on.
	spans(bytes register, widths []int, places []place, body func(n lanes))
	span(n int) lanes // of 8, 4 or 1 values
	// dot sums the products of x and y, so many bytes, in four sums that it then adds: the first two and the last two.
	dot(x, y place, bytes register) vector
}
