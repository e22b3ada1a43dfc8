package cuda_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	native "github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// bench runs kernels on an emulated device. Every array ends where memory ends.
type bench struct {
	t   *testing.T
	dev driver.Device
}

// both runs f on a device whose threads and blocks run forwards and on one where the last run first: what f returns
// must be the same bits. It is what the first returned.
func both(t *testing.T, f func(b *bench) []float32) []float32 {
	t.Helper()
	var out [2][]float32
	for i := range out {
		d := emulation(t)
		d.Backwards = i == 1
		dev, err := d.Open(0)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = f(&bench{t, dev})
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(out[0], out[1]) {
		t.Error("the order of threads and blocks changes the result")
	}
	return out[0]
}

func (b *bench) alloc(n disdel.Bytes) driver.Pointer {
	b.t.Helper()
	p, err := b.dev.Alloc(n)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// up copies values to the device, n of them to a new array of so many without any.
func (b *bench) up(v []float32) driver.Pointer {
	b.t.Helper()
	p := b.alloc(disdel.Bytes(4 * len(v)))
	b.write(p, v)
	return p
}

func (b *bench) room(n int) driver.Pointer { return b.alloc(disdel.Bytes(4 * n)) }

func (b *bench) write(p driver.Pointer, v any) {
	b.t.Helper()
	data, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.dev.Write(p, data, driver.InOrder); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(p driver.Pointer, v any) {
	b.t.Helper()
	data := make([]byte, binary.Size(v))
	if err := b.dev.Read(data, p); err != nil {
		b.t.Fatal(err)
	}
	if _, err := binary.Decode(data, binary.LittleEndian, v); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) down(p driver.Pointer, n int) []float32 {
	b.t.Helper()
	out := make([]float32, n)
	b.read(p, out)
	return out
}

func (b *bench) run(launches ...driver.Launch) {
	b.t.Helper()
	p, err := b.dev.Prepare(launches)
	if err == nil {
		err = b.dev.Run(p)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// control returns what kernels read about a batch of rows.
func (b *bench) control(rows int) driver.Pointer {
	c := kernel.Control{Seed: 77, Step: 3, Rows: int32(rows), Rate: -0.1, AdamRate: -0.02, AdamRoot: 3, Keep: 0.999}
	p := b.alloc(disdel.Bytes(binary.Size(c)))
	b.write(p, c)
	return p
}

func (b *bench) result() driver.Pointer {
	r := kernel.Result{Scale: 1}
	p := b.alloc(disdel.Bytes(binary.Size(r)))
	b.write(p, r)
	return p
}

// image draws an image whose lanes behind the rows are zero, with room behind it as the processor's kernels want it.
func image(rng *rand.Rand, im plan.Image, rows int) []float32 {
	out := make([]float32, im.Len(), im.Len()+4096)
	for i := range out {
		if i%im.Lanes < rows {
			out[i] = rng.Float32()*2 - 1
		}
	}
	return out
}

func random(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = rng.Float32()*2 - 1
	}
	return out
}

// near holds values against those of the processor's kernels; terms is how many a sum has.
func near(t *testing.T, what string, got, want []float32, terms int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	bound := 3e-6 + 3e-7*math.Sqrt(float64(terms))
	for i := range want {
		w, g := float64(want[i]), float64(got[i])
		if g != w && !(math.Abs(g-w) <= bound*(1+math.Abs(w))) {
			t.Fatalf("%s: value %d of %d is %v, want %v", what, i, len(want), g, w)
		}
	}
}

// processor runs f on the processor's kernels.
func processor(t *testing.T, f func(w *native.Worker)) {
	t.Helper()
	set, err := native.Choose()
	if err != nil {
		t.Fatal(err)
	}
	native.NewTeam(set, 1, 128).Run(f)
}

// geometries are convolutions at odd sizes: few filters and many, strides, dilation, groups, padding on two sides only,
// a kernel of the whole image, sums that are divided into parts.
func geometries() []plan.Conv {
	conv := func(c, h, w, filters, k, stride, dilation, pad, groups, lanes int) plan.Conv {
		return plan.Conv{
			In: plan.Image{C: c, H: h, W: w, Lanes: lanes}, Filters: filters, KH: k, KW: k, SH: stride, SW: stride,
			DH: dilation, DW: dilation, Top: pad, Left: pad, Groups: groups,
			OH: (h+2*pad-(k-1)*dilation-1)/stride + 1, OW: (w+2*pad-(k-1)*dilation-1)/stride + 1,
		}
	}
	odd := conv(3, 7, 6, 18, 3, 1, 1, 0, 1, 16)
	odd.KW, odd.SW, odd.Top, odd.OH, odd.OW = 2, 2, 1, 6, 3
	return []plan.Conv{
		conv(1, 9, 9, 6, 5, 1, 1, 0, 1, 32), conv(5, 7, 6, 17, 3, 1, 1, 1, 1, 16), conv(3, 9, 8, 33, 3, 2, 1, 1, 1, 16),
		conv(4, 9, 9, 7, 3, 1, 2, 2, 1, 16), conv(6, 5, 5, 8, 3, 1, 1, 1, 2, 16), conv(70, 3, 3, 66, 1, 1, 1, 0, 1, 16),
		conv(4, 3, 4, 19, 3, 1, 1, 0, 1, 48), plan.Dense(37, 21, 32), odd,
	}
}

func TestConvolutionsAreTheProcessorsEngines(t *testing.T) {
	emulation(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range geometries() {
		rows := c.In.Lanes - 5
		x, dy := image(rng, c.In, rows), image(rng, c.Out(), rows)
		weights, bias := random(rng, c.Filters*c.Inner()*c.Taps()), random(rng, c.Filters)
		seen := image(rng, c.In, rows)
		for _, relu := range []bool{false, true} {
			c.ReLU = relu
			y, dx, dw, db := convolved(t, c, rows, [5][]float32{x, dy, weights, bias, seen})
			got := both(t, func(b *bench) (out []float32) {
				k, px, pdy, pw := kernel.Conv{Conv: c, Control: b.control(rows)}, b.up(x), b.up(dy), b.up(weights)
				py, pdx, pdw, pdb := b.room(len(y)), b.up(seen), b.room(len(dw)), b.room(len(db))
				b.run(k.Forward(py, px, pw, b.up(bias)), k.Data(pdx, pdy, pw, relu)) // the data's is added once, and once not
				b.run(k.Weights(pdw, px, pdy, b.alloc(max(k.Work(), 16)))...)
				b.run(kernel.BiasBack(pdb, pdy, k.Control, b.alloc(kernel.SumWork(c.Out())), c.Out())...)
				for _, v := range []struct {
					p driver.Pointer
					n int
				}{{py, len(y)}, {pdx, len(dx)}, {pdw, len(dw)}, {pdb, len(db)}} {
					out = append(out, b.down(v.p, v.n)...)
				}
				return out
			})
			for _, v := range []struct {
				what  string
				want  []float32
				terms int
			}{
				{"forward", y, c.Inner() * c.Taps()},
				{"by the data", dx, c.Outer() * c.Taps()},
				{"by the weights", dw, c.OH * c.OW * rows},
				{"by the bias", db, c.OH * c.OW * rows},
			} {
				near(t, v.what, got[:len(v.want)], v.want, v.terms)
				got = got[len(v.want):]
			}
			if t.Failed() {
				t.Fatalf("of %+v", c)
			}
		}
	}
}

// convolved is what the processor's kernels make of x, dy, weights and bias: output and gradients, weights in PyTorch's
// order. The gradient by the data is added to what is there where the output has a ReLU.
func convolved(t *testing.T, c plan.Conv, rows int, v [5][]float32) (y, dx, dw, db []float32) {
	t.Helper()
	const slack = 4096
	wide := func(x []float32) []float32 { return append(slices.Clone(x), make([]float32, slack)...)[:len(x)] }
	out := c.Out()
	y, dx = make([]float32, out.Len(), out.Len()+slack), wide(v[4])
	w, g := make([]float32, c.WeightLen()), make([]float32, c.WeightLen())
	b, gb := make([]float32, c.BiasLen()), make([]float32, c.BiasLen())
	native.ImportWeights(&c, w, v[2])
	for k, x := range v[3] {
		b[c.BiasAt(k)] = x
	}
	processor(t, func(k *native.Worker) {
		k.Forward(&c, v[0], w, b, y)
		k.BackData(&c, v[1], w, dx, c.ReLU)
		k.BackWeights(&c, v[0], v[1], g, make([]float32, max(c.ScratchLen(), 16*plan.Padded(c.Filters))))
		k.BackBias(&c, v[1], gb, make([]float32, 16*plan.Padded(c.Filters)))
	})
	dw, db = make([]float32, len(v[2])), make([]float32, c.Filters)
	native.ExportWeights(&c, dw, g)
	for i := range db {
		db[i] = gb[c.BiasAt(i)]
	}
	return y, dx, dw, db
}

func TestWindowsAreTheProcessorsEngines(t *testing.T) {
	emulation(t)
	rng := rand.New(rand.NewPCG(3, 4))
	const rows, lanes = 13, 16
	in := plan.Image{C: 5, H: 7, W: 6, Lanes: lanes}
	for _, g := range []plan.Pool{
		{In: in, KH: 2, KW: 2, SH: 2, SW: 2, DH: 1, DW: 1, OH: 3, OW: 3},
		{In: in, KH: 3, KW: 3, SH: 2, SW: 1, DH: 1, DW: 1, Top: 1, Left: 1, OH: 4, OW: 6, CountPad: true},
		{In: in, KH: 3, KW: 2, SH: 1, SW: 2, DH: 2, DW: 1, Top: 1, Left: 0, OH: 5, OW: 3},
	} {
		out := plan.Image{C: in.C, H: g.OH, W: g.OW, Lanes: lanes}
		x, dy, seen := image(rng, in, rows), image(rng, out, rows), image(rng, in, rows)
		x[0], x[in.Pixel()] = 5, 5 // a tie: the first gets the gradient
		weights := random(rng, in.C*g.KH*g.KW)
		want := map[string][]float32{}
		have := func(name string, n int) []float32 {
			want[name] = make([]float32, n, n+4096)
			return want[name]
		}
		processor(t, func(w *native.Worker) {
			w.MaxPool(&g, x, have("max", out.Len()))
			w.MaxPoolBack(&g, x, want["max"], dy, have("max back", in.Len()))
			w.AvgPool(&g, x, have("average", out.Len()))
			w.AvgPoolBack(&g, dy, append(have("average back", in.Len())[:0], seen...))
			w.AdaptivePool(in, 3, 4, x, have("adaptive", 12*in.Pixel()))
			w.AdaptivePoolBack(in, g.OH, g.OW, dy, have("adaptive back", in.Len()))
			turned := make([]float32, plan.Padded(len(weights)))
			turn(turned, weights, in.C)
			w.DepthwiseForward(&g, x, turned, have("depthwise", out.Len()))
			w.DepthwiseBackData(&g, dy, turned, have("depthwise data", in.Len()), false)
			w.DepthwiseBackWeights(&g, x, dy, turned, make([]float32, 16*plan.Padded(in.C)))
			turnBack(have("depthwise weights", len(weights)), turned, in.C)
		})
		got := map[string][]float32{}
		both(t, func(b *bench) (all []float32) {
			k := kernel.Window{Pool: g, Control: b.control(rows)}
			a, back := k, k
			a.OH, a.OW, back.OH, back.OW = 3, 4, g.OH, g.OW
			px, pdy, pw := b.up(x), b.up(dy), b.up(weights)
			most, average := b.room(out.Len()), b.up(seen)
			places := map[string]driver.Pointer{"max": most, "average back": average}
			for _, name := range []string{
				"max back", "average", "adaptive", "adaptive back", "depthwise", "depthwise data", "depthwise weights",
			} {
				places[name] = b.room(len(want[name]))
			}
			b.run(k.MaxPool(most, px), k.MaxPoolBack(places["max back"], px, most, pdy, false),
				k.AvgPool(places["average"], px), k.AvgPoolBack(average, pdy, true),
				a.Adaptive(places["adaptive"], px), back.AdaptiveBack(places["adaptive back"], pdy, false),
				k.Depthwise(places["depthwise"], px, pw, 0), k.DepthwiseData(places["depthwise data"], pdy, pw, false),
				k.DepthwiseWeights(places["depthwise weights"], px, pdy))
			for _, name := range []string{
				"max", "max back", "average", "average back", "adaptive", "adaptive back", "depthwise", "depthwise data",
				"depthwise weights",
			} {
				got[name] = b.down(places[name], len(want[name]))
				all = append(all, got[name]...)
			}
			return all
		})
		for name, w := range want {
			near(t, name, got[name], w, 64*rows)
		}
	}
}

// turn reorders depthwise weights [C][taps] to the processor's [taps][C], turnBack the other way.
func turn(dst, src []float32, channels int) {
	for i, v := range src {
		taps := len(src) / channels
		dst[i%taps*channels+i/taps] = v
	}
}

func turnBack(dst, src []float32, channels int) {
	for i := range dst {
		taps := len(dst) / channels
		dst[i] = src[i%taps*channels+i/taps]
	}
}

func TestPointwiseKernelsAreTheProcessorsEngines(t *testing.T) {
	emulation(t)
	rng := rand.New(rand.NewPCG(5, 6))
	const n = 1184
	x, y := random(rng, n), random(rng, n)
	for i := range x {
		x[i], y[i] = 8*x[i], 8*y[i]
	}
	var want [15][]float32
	for i := range want {
		want[i] = make([]float32, n)
	}
	processor(t, func(w *native.Worker) {
		w.Copy(want[kernel.Copy], x)
		w.Add(want[kernel.Add], x, y)
		w.AddReLU(want[kernel.AddReLU], x, y)
		w.ReLU(want[kernel.ReLU], x)
		w.ReLUBack(want[kernel.ReLUBack], x, y)
		w.Clamp(want[kernel.Clamp], x, 6)
		w.ClampBack(want[kernel.ClampBack], x, y, 6)
		w.Sigmoid(want[kernel.Sigmoid], x)
		w.SigmoidBack(want[kernel.SigmoidBack], x, y)
		w.Tanh(want[kernel.Tanh], x)
		w.TanhBack(want[kernel.TanhBack], x, y)
		w.HardSwish(want[kernel.HardSwish], x)
		w.HardSwishBack(want[kernel.HardSwishBack], x, y)
		w.Dropout(want[14], x, 0.3, len(x), 77^3<<20^9<<52)
	})
	got := both(t, func(b *bench) (all []float32) {
		px, py, out := b.up(x), b.up(y), b.room(n)
		for op := kernel.Clear; op <= kernel.HardSwishBack; op++ {
			b.run(kernel.Pointwise(op, out, px, py, n))
			all = append(all, b.down(out, n)...)
		}
		b.run(kernel.Dropping{Control: b.control(1), Node: 9, Rate: 0.3}.Do(out, px, n))
		return append(all, b.down(out, n)...)
	})
	for op, w := range want {
		near(t, "operation "+string(rune('a'+op)), got[op*n:][:n], w, 1)
	}
}

// A network that has diverged must not look healthy.
func TestWhatIsNoNumberStaysNone(t *testing.T) {
	x := []float32{float32(math.NaN()), 1}
	got := once(t, func(b *bench) (out []float32) {
		px, py := b.up(x), b.room(2)
		for _, op := range []kernel.Op{
			kernel.ReLU, kernel.Clamp, kernel.AddReLU, kernel.Sigmoid, kernel.Tanh, kernel.HardSwish,
		} {
			b.run(kernel.Pointwise(op, py, px, px, 2))
			out = append(out, b.down(py, 2)...)
		}
		return out
	})
	for i, v := range got {
		if (i%2 == 0) != (v != v) {
			t.Errorf("value %d is %v", i, v)
		}
	}
}

// once is both for results that equal nothing, not even themselves.
func once(t *testing.T, f func(b *bench) []float32) []float32 {
	t.Helper()
	dev, err := emulation(t).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close() //nolint:errcheck // the process is a test's
	return f(&bench{t, dev})
}

func TestMovesAreTheProcessorsEngines(t *testing.T) {
	emulation(t)
	rng := rand.New(rand.NewPCG(7, 8))
	const rows, lanes = 37, 48
	im, big := plan.Image{C: 3, H: 5, W: 4, Lanes: lanes}, plan.Image{C: 9, H: 5, W: 4, Lanes: lanes}
	small, border := plan.Image{C: 8, H: 3, W: 2, Lanes: lanes}, plan.Border{Top: 1, Left: 2, Right: 1}
	x, wide, less, samples := image(rng, im, rows), image(rng, big, rows), image(rng, small, rows), random(rng, rows*60)
	around := border.Around(im)
	want := [8][]float32{
		make([]float32, around.Len()), make([]float32, im.Len()), slices.Clone(x), slices.Clone(wide), slices.Clone(x),
		make([]float32, small.Len()), slices.Clone(x), make([]float32, im.Len()),
	}
	processor(t, func(w *native.Worker) {
		w.Import(want[0], im, border, samples, rows)
		w.Flatten(want[1], x, im)
		w.Unflatten(want[2], x, im, true)
		w.Join(want[3], big.C, x, im, 4)
		w.Split(want[4], im, wide, big.C, 4, true)
		w.Subsample(want[5], small, x, im, 2)
		w.SubsampleBack(want[6], im, less, small, 2)
		w.SubsampleBack(want[7], im, less, small, 2)
	})
	var odd kernel.Result
	got := both(t, func(b *bench) (all []float32) {
		px, pw, pl := b.up(x), b.up(wide), b.up(less)
		part, pick := kernel.Part{Image: im, Total: big.C, First: 4}, kernel.Sampling{In: im, Out: small, Stride: 2}
		out := [8]driver.Pointer{
			b.up(make([]float32, around.Len())), b.room(im.Len()), b.up(x), b.up(wide), b.up(x), b.room(small.Len()), b.up(x),
			b.room(im.Len()),
		}
		result, told := b.result(), b.alloc(48)
		b.write(told, kernel.Control{Input: b.up(samples), Rows: rows})
		b.run(kernel.Importing{Image: im, Border: border, Control: told, Result: result}.Do(out[0]),
			kernel.Flatten(out[1], px, im), kernel.Unflatten(out[2], px, im, true), part.Join(out[3], px),
			part.Split(out[4], pw, true), pick.Forward(out[5], px), pick.Back(out[6], pl, true), pick.Back(out[7], pl, false))
		b.read(result, &odd)
		for i, p := range out {
			all = append(all, b.down(p, len(want[i]))...)
		}
		return all
	})
	for i, w := range want {
		near(t, "move "+string(rune('a'+i)), got[:len(w)], w, 1)
		got = got[len(w):]
	}
	if odd.Odd != 0 {
		t.Error("samples are said not to be finite")
	}
}

func TestNormsAreTheProcessorsEngines(t *testing.T) {
	emulation(t)
	rng := rand.New(rand.NewPCG(9, 10))
	im := plan.Image{C: 5, H: 24, W: 24, Lanes: 32} // sums in two parts
	const rows = 29
	x, dy := image(rng, im, rows), image(rng, im, rows)
	for i := range x {
		x[i] += 30 // a large mean
	}
	gamma, beta, mean, variance := random(rng, 5), random(rng, 5), random(rng, 5), []float32{1, 2, 3, 4, 5}
	for _, relu := range []bool{false, true} {
		n := native.Norm{Image: im, Eps: 1e-5, Momentum: 0.1, Rows: rows, ReLU: relu}
		mask := make([]float32, im.Lanes)
		for i := range rows {
			mask[i] = 1
		}
		array := func(v []float32) []float32 { return append(slices.Clone(v), make([]float32, 16)...) }
		s := native.NormState{
			Gamma: array(gamma), Beta: array(beta), Mean: array(nil), Var: array(nil), Shift: array(nil), Scale: array(nil),
			Offset: array(nil), Third: array(nil), Sums: make([]float32, 32*16), Mask: mask,
		}
		running := [2][]float32{array(mean), array(variance)}
		y, inferred, back := make([]float32, im.Len()), make([]float32, im.Len()), slices.Clone(dy)
		dGamma, dBeta := array(nil), array(nil)
		processor(t, func(w *native.Worker) {
			w.NormForward(&n, &s, running, x, y)
			w.NormBack(&n, &s, x, y, back, dGamma, dBeta)
			w.NormEval(&n, &s, running, x, inferred)
		})
		want := [][]float32{y, running[0][:5], running[1][:5], back, dGamma[:5], dBeta[:5], inferred}
		got := both(t, func(b *bench) (all []float32) {
			k := kernel.Norm{
				Image: im, Epsilon: 1e-5, Momentum: 0.1, ReLU: relu, RunningMean: b.up(mean), RunningVar: b.up(variance),
				Gamma: b.up(gamma), Beta: b.up(beta), DGamma: b.room(5), DBeta: b.room(5), Mean: b.room(5), Inverse: b.room(5),
				Scale: b.room(5), Offset: b.room(5), Third: b.room(5), Work: b.alloc(kernel.SumWork(im)),
				Control: b.control(rows), Result: b.result(),
			}
			px, py, pdy, pi := b.up(x), b.room(im.Len()), b.up(dy), b.room(im.Len())
			b.run(k.Forward(py, px)...)
			b.run(k.Back(pdy, px, py)...)
			b.run(k.Infer(pi, px)...)
			for i, p := range []driver.Pointer{py, k.RunningMean, k.RunningVar, pdy, k.DGamma, k.DBeta, pi} {
				all = append(all, b.down(p, len(want[i]))...)
			}
			return all
		})
		for i, w := range want {
			near(t, "norm "+string(rune('a'+i)), got[:len(w)], w, 400*rows)
			got = got[len(w):]
		}
	}
}

// What is no kernel's argument, and what leaves its array, is a typed error, and so is all that is asked after it.
func TestADeviceThatIsLostSaysSo(t *testing.T) {
	d := emulation(t)
	for name, wrong := range map[string]func(b *bench) driver.Launch{
		"arguments": func(b *bench) driver.Launch {
			return driver.Launch{Kernel: "sgd", Grid: [3]int{1, 1, 1}, Args: []byte{1}}
		},
		"array": func(b *bench) driver.Launch { return kernel.Pointwise(kernel.Clear, b.room(16), 0, 0, 5000) },
	} {
		dev, err := d.Open(0)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t, dev}
		p, err := dev.Prepare([]driver.Launch{wrong(b)})
		if err != nil {
			t.Fatal(err)
		}
		_ = dev.Run(p) // it may not know yet
		var fault *driver.Fault
		for range 2 {
			err = dev.Read(make([]byte, 4), 64)
			if !errors.As(err, &fault) || fault.Cause != driver.DeviceLost || fault.Said == "" {
				t.Errorf("%s: %v, and no device that is lost", name, err)
			}
		}
		if err := dev.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADeviceKnowsItsKernels(t *testing.T) {
	dev, err := emulation(t).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close() //nolint:errcheck // the process is a test's
	var fault *driver.Fault
	_, err = dev.Prepare([]driver.Launch{{Kernel: "fft"}})
	if !errors.As(err, &fault) || fault.Cause != driver.BadLaunch {
		t.Errorf("%v, and no launch that failed", err)
	}
	if _, err := emulation(t).Open(1); !errors.As(err, &fault) || fault.Cause != driver.NoDevice {
		t.Errorf("%v, and no missing device", err)
	}
	_, err = (emulated.Driver{Program: "/nowhere"}).Open(0)
	if !errors.As(err, &fault) || fault.Cause != driver.NoDevice {
		t.Errorf("%v, and no missing device", err)
	}
}
