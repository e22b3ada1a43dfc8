package gorgonia

import (
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Ops makes operations for one expression graph: those of the engine's kernels, which gorgonia lacks or has wrong.
// Images are [rows channels height width], vectors [rows units], values float32. Operations of one Ops share their
// working memory, so that only one of them may run at a time, as a machine of gorgonia does it. Errors are Invalid.
type Ops struct {
	set      kernel.Set
	threads  int
	rows     int
	training bool
	random   *rand.Rand
	made     int
	taps     int // most pixels of a window
	team     *kernel.Team
	work     arena
}

// OpsConfig is what an Ops is made for.
type OpsConfig struct {
	Rows     int // of a batch; what Rows returns
	Training bool
	Threads  int   // workers of an operation; 0 is one
	Seed     int64 // of dropout
}

// NewOps returns an Ops. It returns Invalid where the environment names kernels that this processor has not.
func NewOps(cfg OpsConfig) (*Ops, error) {
	set, err := kernel.Choose()
	if err != nil {
		return nil, err
	}
	return &Ops{
		set: set, threads: max(cfg.Threads, 1), rows: cfg.Rows, training: cfg.Training, taps: 1,
		random: rand.New(rand.NewPCG(uint64(cfg.Seed), dropoutStream)),
	}, nil
}

// dropoutStream tells dropout's numbers from others of the same seed.
const dropoutStream = 0xd20b

// Rows is how many rows a batch of the graph has, at least 2: gorgonia takes a batch of one row for a vector.
func (o *Ops) Rows() int { return max(o.rows, minBatch) }

// Training tells whether the graph is for training: dropout drops, and batch norm goes by the batch.
func (o *Ops) Training() bool { return o.training }

// minBatch keeps gorgonia from taking a batch of one row for a vector.
const minBatch = 2

// run has every worker do f. Buffers are taken before.
func (o *Ops) run(f func(w *kernel.Worker)) {
	if o.team == nil {
		o.team = kernel.NewTeam(o.set, o.threads, o.taps)
	}
	o.team.Run(f)
}

// window makes room for a window of n pixels.
func (o *Ops) window(n int) {
	if n > o.taps {
		o.taps, o.team = n, nil
	}
}

// arena lends buffers for the time of one operation, the same ones every time.
type arena struct {
	slots [][]float32
	next  int
}

// slack is room behind a buffer that kernels may read, never use.
const slack = 2048

func (a *arena) reset() { a.next = 0 }

// take lends n values, whatever they are.
func (a *arena) take(n int) []float32 {
	if a.next == len(a.slots) {
		a.slots = append(a.slots, nil)
	}
	if cap(a.slots[a.next]) < n+slack {
		a.slots[a.next] = make([]float32, n+slack)
	}
	a.next++
	return a.slots[a.next-1][:n]
}

// takeZero lends n zeros.
func (a *arena) takeZero(n int) []float32 {
	v := a.take(n)
	clear(v[:cap(v)])
	return v
}

// image is how kernels hold an array of [rows channels height width] or [rows units].
func image(s tensor.Shape) plan.Image {
	im := plan.Image{C: s[1], H: 1, W: 1, Lanes: plan.Padded(s[0])}
	if len(s) == 4 {
		im.H, im.W = s[2], s[3]
	}
	return im
}

// refuse is the error of an operation that cannot be made.
func refuse(op, format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "make operation " + op, Msg: fmt.Sprintf(format, args...)}
}

// check refuses inputs that are not float32 or of another rank.
func check(op string, n *gorgonia.Node, ranks ...int) error {
	if n.Dtype() != tensor.Float32 {
		return refuse(op, "%s is %v, not float32", n.Name(), n.Dtype())
	}
	for _, r := range ranks {
		if n.Shape().Dims() == r {
			return nil
		}
	}
	return refuse(op, "%s has shape %v, and %v sides are needed", n.Name(), n.Shape(), ranks)
}

// checkLen refuses a parameter of another number of values.
func checkLen(op string, n *gorgonia.Node, want int) error {
	if n == nil {
		return nil
	}
	if err := check(op, n, 1, 2, 4); err != nil {
		return err
	}
	if got := n.Shape().TotalSize(); got != want {
		return refuse(op, "%s has %d values, and %d are needed", n.Name(), got, want)
	}
	return nil
}
