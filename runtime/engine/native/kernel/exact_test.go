package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// odd is any value: mostly one of a model's, and now and then one at the ends of the numbers, or none at all.
func odd(rng *rand.Rand) float32 {
	ends := []float32{
		0, float32(math.Copysign(0, -1)), 1e-40, -math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	}
	switch n := rng.IntN(60); {
	case n < len(ends):
		return ends[n]
	case n < 20:
		return math.Float32frombits(rng.Uint32())
	}
	return float32(rng.NormFloat64())
}

// part is some values in the midst of others, at any place.
type part struct {
	all  []float32
	from int
	n    int
}

func newPart(rng *rand.Rand, n int, value func(*rand.Rand) float32) part {
	p := part{all: make([]float32, n+40), from: 16 + rng.IntN(8), n: n}
	for i := range p.all {
		p.all[i] = value(rng)
	}
	return p
}

func (p part) values() []float32 { return p.all[p.from : p.from+p.n : p.from+p.n] }

func (p part) copied() part {
	p.all = slices.Clone(p.all)
	return p
}

// sameBits tells whether values are the same, bit for bit; NaN is NaN.
func sameBits(x, y []float32) bool {
	return slices.EqualFunc(x, y, func(a, b float32) bool {
		return a != a && b != b || math.Float32bits(a) == math.Float32bits(b)
	})
}

// whole fails where a kernel has other bits than plain Go has, or changed what is not its own.
func whole(t *testing.T, what string, got, want, before part) {
	t.Helper()
	if !sameBits(got.values(), want.values()) {
		t.Fatalf("%s of %d: %v, in plain Go %v", what, got.n, got.values(), want.values())
	}
	for _, p := range []part{got, want} {
		if end := p.from + p.n; !sameBits(p.all[:p.from], before.all[:p.from]) || !sameBits(p.all[end:], before.all[end:]) {
			t.Fatalf("%s of %d changed values beside its own", what, got.n)
		}
	}
}

// besidePlainGo runs f for every path that is not plain Go itself, often.
func besidePlainGo(t *testing.T, times int, f func(t *testing.T, rng *rand.Rand, fast, plain *Exact)) {
	onEveryPath(t, times, func(t *testing.T, rng *rand.Rand, s Set) {
		if s.Name != portable().Name {
			f(t, rng, NewExact(s), NewExact(portable()))
		}
	})
}

func onEveryPath(t *testing.T, times int, f func(t *testing.T, rng *rand.Rand, s Set)) {
	for _, s := range plainSets() {
		t.Run(s.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(13, 14))
			for range some(times) {
				f(t, rng, s)
			}
		})
	}
}

// Rows of every length, at any place, have one set of bits on all paths, and nothing beside them changes.
func TestPairsHaveTheBitsOfPlainGo(t *testing.T) {
	besidePlainGo(t, 600, func(t *testing.T, rng *rand.Rand, fast, plain *Exact) {
		width, n, first := 1+rng.IntN(70), rng.IntN(12), rng.IntN(9)
		const users, items = 5, 4
		u, v := newPart(rng, users*width, odd), newPart(rng, items*width, odd)
		p := Pairs{Users: u.values(), Items: v.values(), Width: width, First: int32(first)}
		places := make([]int32, 2*n)
		for i := range n {
			p.Index = append(p.Index, int32(rng.IntN(users)), int32(first+rng.IntN(items)))
			places[2*i], places[2*i+1] = int32(rng.IntN(users)), int32(rng.IntN(items))
		}
		offset := odd(rng)
		out := newPart(rng, n, odd)
		got, want := out.copied(), out.copied()
		fast.Products(&p, offset, got.values())
		plain.Products(&p, offset, want.values())
		whole(t, "products", got, want, out)

		gu, gv := newPart(rng, users*width, odd), newPart(rng, items*width, odd)
		gotU, gotV, wantU, wantV := gu.copied(), gv.copied(), gu.copied(), gv.copied()
		fast.Slopes(&p, out.values(), places, gotU.values(), gotV.values())
		plain.Slopes(&p, out.values(), places, wantU.values(), wantV.values())
		whole(t, "users' gradients", gotU, wantU, gu)
		whole(t, "items' gradients", gotV, wantV, gv)
	})
}

func TestRowsMoveByTheBitsOfPlainGo(t *testing.T) {
	steps := map[string]func(*Exact, *Touched){
		"sgd":      func(e *Exact, r *Touched) { e.SGD(SGD{Rate: 0.1, Decay: 0.01, Scale: 0.7}, r) },
		"momentum": func(e *Exact, r *Touched) { e.SGD(SGD{Rate: 0.1, Scale: 1, Momentum: 0.9}, r) },
		"nesterov": func(e *Exact, r *Touched) {
			e.SGD(SGD{Rate: 0.1, Decay: 0.1, Scale: 2, Momentum: 0.9, Nesterov: true}, r)
		},
		"adam": func(e *Exact, r *Touched) {
			e.Adam(Adam{Rate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01, Scale: 0.7, Step: 3}, r)
		},
		"lion": func(e *Exact, r *Touched) {
			e.Lion(Lion{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, DecoupledDecay: 0.1, Scale: 0.7}, r)
		},
		"adamw": func(e *Exact, r *Touched) {
			e.Adam(Adam{Rate: 0.1, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-6, DecoupledDecay: 0.1, Scale: 1, Step: 900}, r)
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			besidePlainGo(t, 200, func(t *testing.T, rng *rand.Rand, fast, plain *Exact) {
				const rows = 7
				width := 1 + rng.IntN(70)*rng.IntN(4)/3 // 1 as often as any other
				n := rng.IntN(rows + 1)
				x, first := newPart(rng, rows*width, odd), newPart(rng, rows*width, odd)
				second := newPart(rng, rows*width, func(rng *rand.Rand) float32 { return magnitude(odd(rng)) })
				r := Touched{Width: width, Gradients: newPart(rng, n*width, odd).values()}
				for _, row := range rng.Perm(rows)[:n] {
					r.Rows = append(r.Rows, int32(row))
				}
				if width == 1 && rng.IntN(2) == 0 {
					for i, row := range r.Rows {
						r.Marks = append(r.Marks, row, int32(math.Float32bits(r.Gradients[i])))
					}
					r.Rows, r.Gradients = nil, nil
				}
				of := func(e *Exact) (a, b, c part) {
					a, b, c = x.copied(), first.copied(), second.copied()
					r := r
					r.Values, r.First, r.Second = a.values(), b.values(), c.values()
					step(e, &r)
					return a, b, c
				}
				gotX, gotFirst, gotSecond := of(fast)
				wantX, wantFirst, wantSecond := of(plain)
				whole(t, "weights", gotX, wantX, x)
				whole(t, "first moments", gotFirst, wantFirst, first)
				whole(t, "second moments", gotSecond, wantSecond, second)
			})
		})
	}
}

func TestWholeArraysHaveTheBitsOfPlainGo(t *testing.T) {
	besidePlainGo(t, 1000, func(t *testing.T, rng *rand.Rand, fast, plain *Exact) {
		n := rng.IntN(71)
		x := newPart(rng, n, odd)
		got, want := fast.SquareSum(x.values()), plain.SquareSum(x.values())
		if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
			t.Fatalf("the sum of squares of %v is %v, in plain Go %v", x.values(), got, want)
		}
		y, sum := newPart(rng, n, odd), newPart(rng, n, odd)
		gotSum, wantSum := sum.copied(), sum.copied()
		fast.Add(gotSum.values(), x.values(), y.values())
		for k, v := range x.values() {
			wantSum.values()[k] = v + y.values()[k]
		}
		whole(t, "sum", gotSum, wantSum, sum)
		began, sent := newPart(rng, n, odd).values(), newPart(rng, n, odd).values()
		for k := range n {
			if rng.IntN(2) == 0 { // as most weights are after a step
				began[k], sent[k] = x.values()[k], 0
			}
		}
		if rng.IntN(2) == 0 {
			sent = nil
		}
		local, factor := newPart(rng, n, odd), []float32{0, 0.1, 1, math.MaxFloat32}[rng.IntN(4)]
		gotLocal, wantLocal := local.copied(), local.copied()
		gotMarks, wantMarks := slices.Repeat([]byte{0xa5}, n/8+3), slices.Repeat([]byte{0xa5}, n/8+3)
		fast.Changes(x.values(), began, sent, gotLocal.values(), factor, gotMarks)
		plain.Changes(x.values(), began, sent, wantLocal.values(), factor, wantMarks)
		whole(t, "changes", gotLocal, wantLocal, local)
		if !slices.Equal(gotMarks, wantMarks) || wantMarks[n/8+2] != 0xa5 {
			t.Fatalf("%v marked, in plain Go %v, of %v", gotMarks, wantMarks, x.values())
		}
	})
}

// The orders of sums are those that are promised.
func TestSumsHaveTheirOrder(t *testing.T) {
	onEveryPath(t, 100, func(t *testing.T, rng *rand.Rand, s Set) {
		e := NewExact(s)
		width := 1 + rng.IntN(70)
		u, v := random(rng, width), random(rng, width)
		var sums [4]float32
		last := width - 1
		for k := range last {
			lane := k % 4
			if k >= last-last%4 {
				lane = 0
			}
			sums[lane] += float32(u[k] * v[k])
		}
		want := 3.5 + u[last] + v[last] + ((sums[0] + sums[1]) + (sums[2] + sums[3]))
		out := make([]float32, 1)
		e.Products(&Pairs{Users: u, Items: v, Width: width, Index: []int32{0, 7}, First: 7}, 3.5, out)
		if out[0] != want {
			t.Fatalf("the product of %v and %v is %v, want %v", u, v, out[0], want)
		}
		var squares [8]float64
		for k, x := range u {
			squares[k%8] += float64(x) * float64(x)
		}
		for half := 4; half > 0; half /= 2 {
			for k := range half {
				squares[k] += squares[k+half]
			}
		}
		if got := e.SquareSum(u); got != squares[0] {
			t.Fatalf("the sum of squares of %v is %v, want %v", u, got, squares[0])
		}
	})
}

// The generator has these offsets as numbers.
func TestArgumentsOfExactKernelsLieWhereTheAssemblyLooks(t *testing.T) {
	var (
		p pairArgs
		r rowArgs
		c changeArgs
	)
	for name, at := range map[string]struct{ got, want uintptr }{
		"items": {unsafe.Offsetof(p.items), 8}, "userGradients": {unsafe.Offsetof(p.userGradients), 16},
		"itemGradients": {unsafe.Offsetof(p.itemGradients), 24}, "index": {unsafe.Offsetof(p.index), 32},
		"places": {unsafe.Offsetof(p.places), 40}, "values": {unsafe.Offsetof(p.values), 48},
		"n": {unsafe.Offsetof(p.n), 56}, "row": {unsafe.Offsetof(p.row), 64}, "first": {unsafe.Offsetof(p.first), 72},
		"offset":    {unsafe.Offsetof(p.offset), 80},
		"gradients": {unsafe.Offsetof(r.gradients), 8}, "rowStep": {unsafe.Offsetof(r.rowStep), 16},
		"gradientStep": {unsafe.Offsetof(r.gradientStep), 24}, "rows": {unsafe.Offsetof(r.n), 32},
		"width": {unsafe.Offsetof(r.width), 40}, "weights": {unsafe.Offsetof(r.values), 48},
		"second": {unsafe.Offsetof(r.second), 64}, "scalars": {unsafe.Offsetof(r.s), 72},
		"sent": {unsafe.Offsetof(c.sent), 16}, "marks": {unsafe.Offsetof(c.marks), 32},
		"factor": {unsafe.Offsetof(c.factor), 48},
	} {
		if at.got != at.want {
			t.Errorf("%s lies at %d, not at %d", name, at.got, at.want)
		}
	}
}

// BenchmarkExact has rows of a factorisation of rank 20, in tables of MovieLens-1M's size.
func BenchmarkExact(b *testing.B) {
	const users, items, width, n = 6040, 3706, 21, 4096
	rng := rand.New(rand.NewPCG(1, 2))
	p := Pairs{Users: random(rng, users*width), Items: random(rng, items*width), Width: width, First: users}
	places := make([]int32, 2*n)
	for i := range n {
		p.Index = append(p.Index, int32(rng.IntN(users)), int32(users+rng.IntN(items)))
		places[2*i], places[2*i+1] = p.Index[2*i]%n, p.Index[2*i+1]%n
	}
	out, gu, gv := random(rng, n), random(rng, n*width), random(rng, n*width)
	r := Touched{Width: width, Gradients: gu, Values: p.Users, First: random(rng, users*width)}
	r.Second = make([]float32, users*width)
	for _, row := range rng.Perm(users)[:n] {
		r.Rows = append(r.Rows, int32(row))
	}
	local, marks := make([]float32, users*width), make([]byte, users*width/8+1)
	for _, s := range plainSets() {
		e := NewExact(s)
		for _, f := range []struct {
			name string
			do   func()
		}{
			{"products", func() { e.Products(&p, 0, out) }},
			{"slopes", func() { e.Slopes(&p, out, places, gu, gv) }},
			{"nesterov", func() { e.SGD(SGD{Rate: 1e-9, Scale: 1e-9, Momentum: 0.9, Nesterov: true}, &r) }},
			{"adam", func() { e.Adam(Adam{Rate: 1e-9, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Scale: 1e-9, Step: 1}, &r) }},
			{"squares", func() { e.SquareSum(gu) }},
			{"changes", func() { e.Changes(p.Users, r.First, nil, local, 0.1, marks) }},
		} {
			b.Run(s.Name+"/"+f.name, func(b *testing.B) {
				for b.Loop() {
					f.do()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
			})
		}
	}
}
