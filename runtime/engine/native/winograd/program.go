package winograd

import (
	"math"
	"slices"
)

// Op is what a step does.
type Op int

// Operations, on registers A, B and To and a number n.
const (
	Copy   Op = iota // To = A
	Add              // To = A + B
	Sub              // To = A - B
	Mul              // To = n A
	AddMul           // To += n A
	SubMul           // To -= n A
)

// Step is an operation of a program.
type Step struct {
	Op       Op
	A, B, To int
	Number   int // which of the program's
}

// Program multiplies a vector with a matrix, in few operations on registers: what generators write assembly of. Two
// rows that differ in signs alone, as those of a number and its negative do, share two sums; so do two such columns.
type Program struct {
	In        int // of the vector, in registers 0 and up
	Steps     []Step
	Out       []int     // registers that the product's elements are in at the end
	Registers int       // how many are used
	Numbers   []float32 // that steps multiply with
}

// Program of a matrix.
func (m Matrix) Program() Program {
	w := writer{columns: columnPairs(m), sums: map[[2]int]int{}}
	w.program.In = len(m[0])
	w.values = len(m[0])
	var out []int
	for i := 0; i < len(m); i++ {
		if len(w.columns) == 0 && i+1 < len(m) && differInSigns(m[i], m[i+1]) {
			a, b := w.rowPair(m[i], m[i+1])
			out = append(out, a, b)
			i++
			continue
		}
		out = append(out, w.sum(w.terms(m[i])))
	}
	return w.assign(out)
}

// term is a value and what it is multiplied with.
type term struct {
	value int
	by    float64
}

// writer makes steps of values, each of which has one step that makes it, but for those of AddMul and SubMul.
type writer struct {
	program Program
	values  int
	columns map[int]bool   // the first of each pair of columns
	sums    map[[2]int]int // values of sums (0) and differences (1) of such pairs
}

// columnPairs finds columns that, next to each other, differ in signs alone.
func columnPairs(m Matrix) map[int]bool {
	t, pairs := m.Transposed(), map[int]bool{}
	for j := 0; j+1 < len(t); j++ {
		if differInSigns(t[j], t[j+1]) {
			pairs[j] = true
			j++
		}
	}
	return pairs
}

// differInSigns tells that some elements of two rows are equal, others are each other's negative, and there are no
// more.
func differInSigns(a, b []float64) bool {
	same, turned := false, false
	for i := range a {
		switch {
		case math.Abs(a[i]) != math.Abs(b[i]):
			return false
		case a[i] == 0:
		case a[i] == b[i]:
			same = true
		default:
			turned = true
		}
	}
	return same && turned
}

// terms of a row.
func (w *writer) terms(row []float64) (out []term) {
	for j := 0; j < len(row); j++ {
		switch {
		case row[j] == 0:
		case w.columns[j] && row[j] == row[j+1]:
			out = append(out, term{w.pair(j, 0), row[j]})
		case w.columns[j]:
			out = append(out, term{w.pair(j, 1), row[j]})
		default:
			out = append(out, term{j, row[j]})
		}
		if w.columns[j] {
			j++
		}
	}
	return out
}

// pair is the sum (0) or the difference (1) of two columns' values.
func (w *writer) pair(j, kind int) int {
	if v, ok := w.sums[[2]int{j, kind}]; ok {
		return v
	}
	v := w.step(Step{Op: Add + Op(kind), A: j, B: j + 1})
	w.sums[[2]int{j, kind}] = v
	return v
}

// rowPair makes the values of two rows that differ in signs.
func (w *writer) rowPair(a, b []float64) (first, second int) {
	var same, turned []term
	for j, v := range a {
		switch {
		case v == 0:
		case v == b[j]:
			same = append(same, term{j, v})
		default:
			turned = append(turned, term{j, v})
		}
	}
	x, y := w.sum(same), w.sum(turned)
	first = w.step(Step{Op: Add, A: x, B: y})
	return first, w.step(Step{Op: Sub, A: x, B: y})
}

// step adds one that makes a new value.
func (w *writer) step(s Step) int {
	s.To = w.values
	w.program.Steps = append(w.program.Steps, s)
	w.values++
	return s.To
}

// number finds one, or, where sign does not matter, its negative.
func (w *writer) number(by float64, signed bool) (at int, negative bool) {
	n := &w.program.Numbers
	for i, v := range *n {
		if v == float32(by) || !signed && v == -float32(by) {
			return i, v != float32(by)
		}
	}
	*n = append(*n, float32(by))
	return len(*n) - 1, false
}

// sum makes the sum of terms: those that need no number first, of which the first is added to.
func (w *writer) sum(terms []term) int {
	slices.SortStableFunc(terms, func(a, b term) int { return rank(a.by) - rank(b.by) })
	first := terms[0]
	var acc int
	if first.by == 1 {
		acc = first.value
	} else {
		at, _ := w.number(first.by, true)
		acc = w.step(Step{Op: Mul, A: first.value, Number: at})
	}
	own := first.by != 1 // whether acc may be overwritten
	for _, t := range terms[1:] {
		switch {
		case t.by == 1:
			acc, own = w.step(Step{Op: Add, A: acc, B: t.value}), true
		case t.by == -1:
			acc, own = w.step(Step{Op: Sub, A: acc, B: t.value}), true
		default:
			if !own {
				acc, own = w.step(Step{Op: Copy, A: acc}), true
			}
			at, negative := w.number(t.by, false)
			op := AddMul
			if negative {
				op = SubMul
			}
			w.program.Steps = append(w.program.Steps, Step{Op: op, A: t.value, To: acc, Number: at})
		}
	}
	if !own { // what comes out has a register of its own
		acc = w.step(Step{Op: Copy, A: acc})
	}
	return acc
}

// rank orders terms by their factors.
func rank(by float64) int {
	switch by {
	case 1:
		return 0
	case -1:
		return 1
	}
	if by > 0 {
		return 2
	}
	return 3
}

// assign gives each value a register from its first step to its last use.
func (w *writer) assign(out []int) Program {
	p, last := &w.program, map[int]int{}
	for i, s := range p.Steps {
		last[s.A], last[s.To] = i, i
		if s.Op == Add || s.Op == Sub {
			last[s.B] = i
		}
	}
	for _, v := range out {
		last[v] = len(p.Steps)
	}
	at, free := map[int]int{}, []int{}
	p.Registers = p.In
	for v := range p.In {
		if at[v] = v; !hasKey(last, v) {
			free = append(free, v)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		to, fresh := s.To, !hasKey(at, s.To)
		for _, v := range used(*s) {
			if last[v] == i {
				free = append(free, at[v])
			}
		}
		if fresh {
			if len(free) == 0 {
				free = append(free, p.Registers)
				p.Registers++
			}
			at[to], free = free[len(free)-1], free[:len(free)-1]
		}
		s.A, s.To = at[s.A], at[to]
		if s.Op == Add || s.Op == Sub {
			s.B = at[s.B]
		}
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Op == Copy && s.A == s.To })
	for _, v := range out {
		p.Out = append(p.Out, at[v])
	}
	return *p
}

// used are the values that a step reads, each once, but for what it adds to.
func used(s Step) []int {
	if (s.Op == Add || s.Op == Sub) && s.B != s.A {
		return []int{s.A, s.B}
	}
	return []int{s.A}
}

func hasKey(m map[int]int, key int) bool {
	_, ok := m[key]
	return ok
}
