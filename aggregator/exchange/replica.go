package exchange

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// Combine says what becomes of the updates of a step's members.
type Combine string

// The ways to combine.
const (
	// Sum adds them whole, as MLLess does: as many members move as many times as far as one.
	Sum Combine = "sum"
	// Mean adds the mean of them, as if all had computed on one batch; also what "" means.
	Mean Combine = "mean"
)

// Config is what the members of a round agree on, and which of them a replica is.
type Config struct {
	// Members is how many exchange, at least 1. One member alone exchanges nothing, and is plain training to the bit.
	Members int
	// Member is this one, from 0.
	Member int
	// Threshold is v of the filter: at step t an entry that is owed is sent once it is more than v / sqrt(t) of its
	// weight. 0, the default, sends everything.
	Threshold float64
	// Slack is how many steps members may be apart: a step t begins with everybody's steps up to t - Slack - 1. 0, the
	// default, is lock-step.
	Slack int
	// Combine is Mean unless it says Sum.
	Combine Combine
	// Values is the format that values are sent in: float32, the default, bfloat16 or int8. What they lose there stays
	// owed, as what is not significant does; a flush sends float32.
	Values disdel.Wire
	// Eager has a member compute also with what others have sent that not everybody has: see Ahead. Two runs differ
	// then; one whose members note what they had (Vector) comes to the same bits again.
	Eager bool
}

// Check returns Invalid for what is no configuration.
func (c Config) Check() error {
	if c.Members >= 1 && c.Member >= 0 && c.Member < c.Members && c.Threshold >= 0 && !math.IsInf(c.Threshold, 0) &&
		c.Slack >= 0 && (c.Combine == "" || c.Combine == Sum || c.Combine == Mean) && forms[c.Values] != 0 {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "exchange updates",
		Msg: fmt.Sprintf("member %d of %d, threshold %g, slack %d, combine %q, values %q", c.Member, c.Members, c.Threshold,
			c.Slack, c.Combine, c.Values),
	}
}

// Replica is one member's weights in a round. It is for one goroutine.
type Replica struct {
	cfg    Config
	last   []int     // by member: the step after which it leaves; 0: it stays
	scale  float32   // of an update that is added to S
	shared []float32 // S
	local  []float32 // of the weights, what is not in S
	sent   []float32 // of local, what others have or will have; nil where a step's deltas are folded before the next
	own    []Delta   // of the steps that were made and not folded, oldest first
	room   int       // entries that the next delta may have
	made   int       // steps
	folded int       // of them, those that S has of all members
	ahead  [][]Delta // eager: by member, those of the steps after folded, which S has not; the own ones are in local
	base   []float32 // eager: S and ahead, as the step began with them
	spare  []Delta   // whose memory is to be used again

	kernels *kernel.Exact
	marks   [block / 8]byte // of the weights at work, those that may be significant
}

// New starts at weights that are the same on every member. It takes a copy. It returns Invalid as Check does.
func New(cfg Config, start []float32) (*Replica, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	set, err := kernel.Choose()
	if err != nil {
		return nil, err
	}
	r := &Replica{
		kernels: kernel.NewExact(set), cfg: cfg, last: make([]int, cfg.Members), scale: 1,
		shared: append([]float32(nil), start...), local: make([]float32, len(start)),
	}
	if cfg.Combine != Sum {
		r.scale = 1 / float32(cfg.Members)
	}
	if (cfg.Slack > 0 || cfg.Eager) && cfg.Members > 1 {
		r.sent = make([]float32, len(start))
	}
	if cfg.Eager && cfg.Members > 1 {
		r.ahead, r.base = make([][]Delta, cfg.Members), slices.Clone(r.shared)
	}
	return r, nil
}

// State is all that a replica is besides its configuration, for one that goes on elsewhere. The own deltas of the steps
// after Folded, which everybody has, are not in it.
type State struct {
	Shared, Local, Sent []float32 // Sent: nil where there is no slack
	Made, Folded        int
}

// State is a view of the replica, good until its next step or fold.
func (r *Replica) State() State {
	return State{Shared: r.shared, Local: r.local, Sent: r.sent, Made: r.made, Folded: r.folded}
}

// Resume is a replica that goes on where another one was, to the same bits. It takes a copy; own are the deltas that it
// sent of the steps after Folded. It returns Invalid for what does not fit together.
func Resume(cfg Config, s State, own []Delta) (*Replica, error) {
	r, err := New(cfg, s.Shared)
	if err != nil {
		return nil, err
	}
	if len(s.Local) != len(s.Shared) || len(s.Sent) != len(r.sent) || s.Folded < 0 || s.Made < 0 ||
		cfg.Members > 1 && len(own) != max(0, s.Made-s.Folded) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "resume exchange",
			Msg: fmt.Sprintf("%d and %d of %d weights, %d own deltas of steps %d to %d", len(s.Local), len(s.Sent),
				len(s.Shared), len(own), s.Folded+1, s.Made),
		}
	}
	copy(r.local, s.Local)
	copy(r.sent, s.Sent)
	r.own, r.made, r.folded = append(r.own, own...), s.Made, s.Folded
	return r, nil
}

// Made is how many steps this member has made, and Folded how many of them S has of all members.
func (r *Replica) Made() int { return r.made }

// Folded is how many steps S has of all members.
func (r *Replica) Folded() int { return r.folded }

// Needed is up to which step everybody's deltas have to be folded before the next step may begin.
func (r *Replica) Needed() int { return max(0, r.made-r.cfg.Slack) }

// Shared is S, which must not be changed. It is good until the next fold.
func (r *Replica) Shared() []float32 { return r.shared }

// Fold adds everybody's deltas of a step to S, this member's own among them, in the order of the members; who has left
// has one without entries. Steps are folded in their order. It returns Conflict for another step than the next, for one
// that this member has not made, and for other deltas than one of each member.
func (r *Replica) Fold(step int, deltas []Delta) error {
	if err := r.foldable(step, deltas); err != nil {
		return err
	}
	for _, d := range deltas {
		r.add(r.shared, d, r.scale)
	}
	if step <= r.made {
		own := r.own[0]
		for k, i := range own.Index {
			r.local[i] -= own.Value[k]
			if r.sent != nil {
				r.sent[i] -= own.Value[k]
			}
		}
		r.own = slices.Delete(r.own, 0, 1) // where it lies, so that there is room for the next one
	}
	r.folded = step
	for m, deltas := range r.ahead {
		if len(deltas) > 0 {
			r.ahead[m] = slices.Delete(deltas, 0, 1)
		}
	}
	return nil
}

func (r *Replica) foldable(step int, deltas []Delta) error {
	there := r.There(r.cfg.Member, step)
	switch {
	case step != r.folded+1 || there && step > r.made:
		return r.conflict("step %d is to be folded after %d of %d", step, r.folded, r.made)
	case len(deltas) != r.cfg.Members:
		return r.conflict("%d deltas of %d members", len(deltas), r.cfg.Members)
	}
	own := 0
	if there {
		own = len(r.own[0].Index)
	}
	for m, d := range deltas {
		switch {
		case m == r.cfg.Member && len(d.Index) != own:
			return r.conflict("the own delta of step %d has %d entries, not %d", step, len(d.Index), own)
		case len(d.Index) > 0 && !r.There(m, step):
			return r.conflict("member %d has left, and sends %d entries of step %d", m, len(d.Index), step)
		}
	}
	return nil
}

// add adds a delta, times scale. A product is rounded before it is added, on every processor: S is the same bits on
// all.
func (r *Replica) add(to []float32, d Delta, scale float32) {
	index, values := d.Index, d.Value[:len(d.Index)]
	for k := 0; k < len(index); {
		if k+side <= len(index) && index[k+side-1]-index[k] == side-1 { // side by side, since indices ascend
			row, change := to[index[k]:][:side], values[k:][:side]
			for j := range row {
				row[j] += float32(scale * change[j])
			}
			k += side
			continue
		}
		to[index[k]] += float32(scale * values[k])
		k++
	}
}

// side is how many weights that lie side by side are added at once, as those of a user's factors do.
const side = 4

// Weights writes what the next step computes with into x: S, what there is ahead of it, and what is this member's own.
func (r *Replica) Weights(x []float32) {
	began := r.shared
	if r.base != nil {
		r.addAhead()
		began = r.base
	}
	r.kernels.Add(x[:len(began)], began, r.local)
}

// Settle ends a round after everybody's flush has been folded: the weights are S. What rounding has left of own updates
// is forgotten. It returns Conflict before that.
func (r *Replica) Settle() error {
	if r.folded < r.made {
		return r.conflict("%d of %d steps are folded", r.folded, r.made)
	}
	clear(r.local)
	clear(r.sent)
	return nil
}

// Owed is what of this member's updates nobody else has or will have, summed up by its absolute values.
func (r *Replica) Owed() (sum float64) {
	for i, v := range r.local {
		if r.sent != nil {
			v -= r.sent[i]
		}
		sum += math.Abs(float64(v))
	}
	return sum
}

func (r *Replica) conflict(format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Op: fmt.Sprintf("exchange updates of member %d", r.cfg.Member),
		Msg: fmt.Sprintf(format, args...),
	}
}

// Send ends a step that has led to the weights x, and returns what the others are to have of it: the entries of what is
// owed that are significant. It returns Conflict for a step that was begun without what it needs, and Diverged for one
// that changes a weight by what is no number, after which the replica is of no use.
func (r *Replica) Send(x []float32) (Delta, error) {
	return r.send(x, r.cfg.Threshold/math.Sqrt(float64(r.made+1)), r.cfg.Values)
}

// Flush is Send of everything that is owed, however little: the last step of a round. When everybody's flush is folded,
// Settle makes all members equal.
func (r *Replica) Flush(x []float32) (Delta, error) { return r.send(x, 0, disdel.WireFloat32) }

func (r *Replica) send(x []float32, threshold float64, values disdel.Wire) (d Delta, err error) {
	if r.folded < r.Needed() {
		return d, r.conflict("step %d began with the steps up to %d, and needs those up to %d", r.made+1, r.folded,
			r.Needed())
	}
	if len(x) != len(r.shared) {
		return d, r.conflict("%d weights, and there are %d", len(x), len(r.shared))
	}
	r.made++
	if r.cfg.Members == 1 {
		copy(r.shared, x)
		r.folded = r.made
		return d, nil
	}
	began := r.shared
	if r.base != nil {
		began = r.base
	}
	d = r.Spare()
	d.Index, d.Value = slices.Grow(d.Index, r.room), slices.Grow(d.Value, r.room)
	d = r.significant(d, x, began, threshold)
	r.room = d.Len() + d.Len()/8
	if k := slices.IndexFunc(d.Value, notFinite); k >= 0 {
		return d, &disdel.Error{
			Kind: disdel.Diverged, Op: fmt.Sprintf("exchange updates of member %d", r.cfg.Member),
			Msg:  fmt.Sprintf("step %d changes weight %d by %v", r.made, d.Index[k], d.Value[k]),
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	if d.Values = values; forms[values] != asFloat32 { // which loses nothing, and comes to nothing nowhere
		d = d.Rounded(values)
	}
	if r.sent != nil {
		for k, i := range d.Index {
			r.sent[i] += d.Value[k]
		}
	}
	r.own = append(r.own, d)
	return d, nil
}

// notFinite tells of infinities and NaN, which nobody would read.
func notFinite(v float32) bool { return v-v != 0 }

// block is how many weights are looked at together.
const block = 4096

// significant takes what of the weights x the step did not begin with as what is this member's own, and adds the
// entries that go to d. The kernel takes all weights at once, most of which are as they were, and marks those that may
// go, by a threshold that is no higher; those are looked at one by one.
func (r *Replica) significant(d Delta, x, began []float32, threshold float64) Delta {
	factor := notAbove(threshold)
	for from := 0; from < len(x); from += block {
		end := min(from+block, len(x))
		var sent []float32
		if r.sent != nil {
			sent = r.sent[from:end]
		}
		if end-from < block {
			clear(r.marks[:])
		}
		r.kernels.Changes(x[from:end], began[from:end], sent, r.local[from:end], factor, r.marks[:])
		for word := 0; word < end-from; word += 64 {
			if marked := binary.LittleEndian.Uint64(r.marks[word/8:]); marked != 0 {
				d = r.take(d, marked, from+word, x, threshold)
			}
		}
	}
	return d
}

// take adds to d what goes of up to 64 weights, from an index on.
func (r *Replica) take(d Delta, marked uint64, from int, x []float32, threshold float64) Delta {
	n := len(d.Index)
	index := slices.Grow(d.Index, bits.OnesCount64(marked))
	value := slices.Grow(d.Value, bits.OnesCount64(marked))
	index, value = index[:cap(index)], value[:cap(value)]
	for ; marked != 0; marked &= marked - 1 {
		i := from + bits.TrailingZeros64(marked)
		owed := r.local[i]
		if r.sent != nil {
			owed -= r.sent[i]
		}
		// A product, not the quotient: where the weight is 0 anything but 0 goes, and a sum of 0 never does.
		if math.Abs(float64(owed)) <= threshold*math.Abs(float64(x[i])) {
			continue
		}
		index[n], value[n] = int32(i), owed
		n++
	}
	d.Index, d.Value = index[:n], value[:n]
	return d
}

// notAbove is the largest float32 that is not above v, which is not negative. A change that is below its product with a
// weight, rounded, is below the exact product of v too, since rounding changes no order.
func notAbove(v float64) float32 {
	f := float32(v)
	if float64(f) > v {
		f = math.Nextafter32(f, 0)
	}
	return f
}

// Ahead has the steps to come begin with another member's delta of a step that cannot be folded yet. A member's come in
// the order of its steps. It returns Conflict for any other, and where members are not eager.
func (r *Replica) Ahead(member, step int, d Delta) error {
	if r.ahead == nil || member == r.cfg.Member || member < 0 || member >= r.cfg.Members || step != r.Has(member)+1 {
		return r.conflict("step %d of member %d is ahead of %d folded ones", step, member, r.folded)
	}
	r.ahead[member] = append(r.ahead[member], d)
	return nil
}

// Next is a member's delta of the next step to be folded, where it is here already: the own one is.
func (r *Replica) Next(member int) (d Delta, ok bool) {
	switch {
	case member == r.cfg.Member && len(r.own) > 0:
		return r.own[0], true
	case r.ahead != nil && len(r.ahead[member]) > 0:
		return r.ahead[member][0], true
	}
	return d, false
}

// Has is the newest step of another member that the next step begins with.
func (r *Replica) Has(member int) int {
	if r.ahead == nil {
		return r.folded
	}
	return r.folded + len(r.ahead[member])
}

// addAhead makes base of S and what is ahead of it, in the order of members and steps.
func (r *Replica) addAhead() {
	copy(r.base, r.shared)
	for _, deltas := range r.ahead {
		for _, d := range deltas {
			r.add(r.base, d, r.scale)
		}
	}
}

// Leave ends this member's last step: it sends all that is owed, and nothing comes of it after that. It may do so after
// any step; the others continue without it, once they know by Left. When it has folded what the others send of their
// own last steps, it has the same weights as they.
func (r *Replica) Leave(x []float32) (Delta, error) {
	d, err := r.Flush(x)
	if err == nil {
		r.Left(r.cfg.Member, r.made)
	}
	return d, err
}

// Left says which step of a member was its last: of later ones nothing comes of it. Who folds has to be told before it
// folds a step after that. A mean stays one of all members that the round began with: a step of fewer members has fewer
// rows, and moves as much less. The members that stay make more steps, so that each batch moves the weights as far as
// before. Divided by those that are there, a step on one batch would move as far as one on all of them.
func (r *Replica) Left(member, step int) { r.last[member] = step }

// There tells whether a member takes part in a step, as far as is known.
func (r *Replica) There(member, step int) bool { return r.last[member] == 0 || step <= r.last[member] }

// Spare is a delta without entries, in memory that is used again where there is such.
func (r *Replica) Spare() Delta {
	d := Delta{Index: []int32{}}
	if n := len(r.spare); n > 0 {
		d.Index, d.Value = r.spare[n-1].Index[:0], r.spare[n-1].Value[:0]
		r.spare = r.spare[:n-1]
	}
	return d
}

// Recycle takes the memory of deltas that nobody looks at any more. Without it every delta has memory of its own.
func (r *Replica) Recycle(all []Delta) {
	for _, d := range all {
		if cap(d.Index) > 0 && len(r.spare) <= 2*r.cfg.Members {
			r.spare = append(r.spare, d)
		}
	}
}
