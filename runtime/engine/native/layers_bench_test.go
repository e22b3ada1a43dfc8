package native

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// BenchmarkLayers tells where the time of a step of training goes, and that of a prediction of one row: the least of
// all steps, a line a layer, the most expensive first, and a sum for each kind of layer.
// `go test -bench Layers/inceptionv3 -benchtime 5x`.
func BenchmarkLayers(b *testing.B) {
	for _, n := range benched {
		g := benchedGraph(b, n.name, n.input)
		b.Run(n.name+"/step", func(b *testing.B) { timeLayers(b, g, training(n.batch, 0)) })
		b.Run(n.name+"/row", func(b *testing.B) { timeLayers(b, g, engine.Spec{BatchSize: 1}) })
	}
}

// spent is the time of a layer: forward, and back to its input, to its weights, and to their update.
type spent struct {
	name                           string
	forward, data, weights, update time.Duration
	flops                          float64 // forward, by the definition, of taps that meet the image
}

func (s *spent) all() time.Duration { return s.forward + s.data + s.weights + s.update }

// least takes the times of a step where they are less than those before: others use the machine, too.
func (s *spent) least(step *spent, first bool) {
	for _, t := range []struct{ to, from *time.Duration }{
		{&s.forward, &step.forward}, {&s.data, &step.data}, {&s.weights, &step.weights}, {&s.update, &step.update},
	} {
		if first || *t.from < *t.to {
			*t.to = *t.from
		}
	}
}

func timeLayers(b *testing.B, g *model.Graph, cfg engine.Spec) {
	e, x, y := benchedEngine(b, g, cfg)
	e.prepare(x, y, cfg.BatchSize, cfg.Training)
	e.batch = cfg.BatchSize
	layers, step := make([]spent, len(e.layers)), make([]spent, len(e.layers))
	job := func(w *kernel.Worker) { e.timed(w, step) }
	for range 2 {
		e.team.Run(job)
	}
	for first := true; b.Loop(); first = false {
		clear(step)
		e.steps++
		e.team.Run(job)
		for i := range step {
			layers[i].least(&step[i], first)
		}
	}
	kinds := map[string]*spent{}
	for i := range layers {
		l := &e.layers[i]
		layers[i].name, layers[i].flops = l.shape(), l.multiplyAdds()*2*float64(cfg.BatchSize)
		kind := kinds[l.node.Op.String()]
		if kind == nil {
			kind = &spent{name: l.node.Op.String()}
			kinds[kind.name] = kind
		}
		kind.forward, kind.data = kind.forward+layers[i].forward, kind.data+layers[i].data
		kind.weights, kind.update = kind.weights+layers[i].weights, kind.update+layers[i].update
		kind.flops += layers[i].flops
	}
	for _, k := range kinds {
		layers = append(layers, *k)
	}
	fmt.Printf("%s, a step or a row of %d:\n%s", b.Name(), cfg.BatchSize, table(layers)) // b.Log cuts it off
}

// timed is one step of training, or one prediction, of one worker.
func (e *Engine) timed(w *kernel.Worker, layers []spent) {
	var last time.Time
	add := func(to *time.Duration) {
		now := time.Now()
		*to += now.Sub(last)
		last = now
	}
	w.Rounding(false)
	last = time.Now()
	in := &e.layers[0]
	if e.plan.ByRows {
		w.RowsImport(in.out, in.v.Image, in.v.Border, e.x, e.rows)
	} else {
		w.Import(in.out, in.v.Image, in.v.Border, e.x, e.rows)
	}
	add(&layers[0].forward)
	e.scaleNorms(w)
	for i := 1; i < len(e.layers); i++ {
		last = time.Now()
		e.layers[i].forward(w, e)
		add(&layers[i].forward)
	}
	e.lossOf(w, e.training)
	if !e.training {
		e.stale = false
		add(&layers[len(layers)-1].forward)
		return
	}
	last = time.Now()
	for i := e.head; i > 0; i-- {
		l := &e.layers[i]
		if len(l.grad) == 0 {
			continue
		}
		flow := plan.FlowNone
		if l.node.Op == model.OpConv || l.node.Op == model.OpDense {
			flow, l.v.GradIn[0] = l.v.GradIn[0], plan.FlowNone // weights alone
			l.backward(w, e)
			add(&layers[i].weights)
			l.v.GradIn[0] = flow
		}
		switch c := &l.v.Conv; {
		case l.node.Op != model.OpConv && l.node.Op != model.OpDense:
			l.backward(w, e)
		case flow == plan.FlowNone:
		case l.v.Depthwise:
			w.DepthwiseBackData(&l.v.Pool, l.grad, l.weight.value, l.in[0].grad, flow == plan.FlowAdd)
		case c.BackTile.Is():
			w.WinogradBackData(c, l.grad, l.weight.value, l.in[0].grad, l.back, flow == plan.FlowAdd)
		default:
			w.BackData(c, l.grad, l.weight.value, l.in[0].grad, flow == plan.FlowAdd)
		}
		add(&layers[i].data)
		e.update(w, l.params)
		add(&layers[i].update)
	}
}

// shape says what a layer computes.
func (l *layer) shape() string {
	s := fmt.Sprintf("%-28.28s %s", l.node.Name, l.node.Op)
	if len(l.in) > 0 {
		im := l.in[0].v.Image
		s += fmt.Sprintf(" %dx%dx%d", im.C, im.H, im.W)
	}
	s += fmt.Sprintf(" -> %dx%dx%d", l.v.Image.C, l.v.Image.H, l.v.Image.W)
	if k := l.node.Kernel; k.H > 0 {
		s += fmt.Sprintf(" by %dx%d/%d", k.H, k.W, l.node.Stride.H)
	}
	if c := l.v.Conv; c.Tile.Is() || c.BackTile.Is() {
		s += fmt.Sprintf(" %v, %v", c.Tile, c.BackTile)
	}
	if l.v.Fused {
		s += " (fused)"
	}
	return s
}

// multiplyAdds are those of a row by the definition, of taps that meet the image.
func (l *layer) multiplyAdds() float64 {
	met := func(outputs, stride, dilation, pad, kernel, size int) (n int) {
		for o := range outputs {
			for t := range kernel {
				if at := o*stride - pad + t*dilation; at >= 0 && at < size {
					n++
				}
			}
		}
		return n
	}
	switch l.node.Op {
	case model.OpDense:
		return float64(l.v.Conv.In.C * l.v.Conv.Filters)
	case model.OpConv:
		c := &l.v.Conv
		return float64(met(c.OH, c.SH, c.DH, c.Top, c.KH, c.In.H)*met(c.OW, c.SW, c.DW, c.Left, c.KW, c.In.W)) *
			float64(c.Inner()*c.Filters)
	default:
		return 0
	}
}

// table lists layers, in microseconds of a step and billions of operations a second.
func table(layers []spent) string {
	sort.Slice(layers, func(i, j int) bool { return layers[i].all() > layers[j].all() })
	var out strings.Builder
	fmt.Fprintf(&out, "%9s %6s %9s %6s %9s %6s %9s\n", "forward", "GF/s", "data", "GF/s", "weights", "GF/s", "update")
	for i := range layers {
		s := &layers[i]
		if s.all() == 0 {
			continue
		}
		for _, t := range []time.Duration{s.forward, s.data, s.weights} {
			us := float64(t.Nanoseconds()) / 1e3
			fmt.Fprintf(&out, "%9.1f %6.1f ", us, s.flops/1e3/max(us, 1e-3))
		}
		fmt.Fprintf(&out, "%9.1f  %s\n", float64(s.update.Nanoseconds())/1e3, s.name)
	}
	return out.String()
}
