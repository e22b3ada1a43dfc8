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

// Combine says how the updates of a step's members are combined.
type Combine string

// The ways to combine.
const (
	// Sum adds the updates, as MLLess does: n members move the weights n times as far as one.
	Sum Combine = "sum"
	// Mean adds their mean, as if all had computed on one batch. "" means Mean too.
	Mean Combine = "mean"
)

// Config is what all members of a round agree on, and which member a replica is.
type Config struct {
	// Members is the number of members, at least 1. A single member exchanges nothing and has the bits of plain training.
	Members int
	// Member is this member, from 0.
	Member int
	// Threshold is v of the filter: at step t an entry is sent once its unsent sum is more than v / sqrt(t) of its
	// weight. 0, the default, sends everything.
	Threshold float64
	// Slack is how many steps members may be apart: step t starts with everybody's steps up to t - Slack - 1. 0, the
	// default, is lock-step.
	Slack int
	// Combine is Mean unless it says Sum.
	Combine Combine
	// Values is the format of sent values: float32 (the default), bfloat16 or int8. The rounding error is sent later. A
	// flush sends float32.
	Values disdel.Wire
	// Eager members also compute with deltas of others that are not in S: see AddEager. Two runs then differ; a run whose
	// members note what they had (Vector) can be replayed to the same bits.
	Eager bool
}

// Check returns Invalid for an impossible configuration.
func (c Config) Check() error {
	if c.Members >= 1 && c.Member >= 0 && c.Member < c.Members && c.Threshold >= 0 && !math.IsInf(c.Threshold, 0) &&
		c.Slack >= 0 && (c.Combine == "" || c.Combine == Sum || c.Combine == Mean) && formatBytes[c.Values] != 0 {
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
	cfg          Config
	last         []int     // by member: its last step; 0: it stays
	scale        float32   // factor of an update that is added to S
	shared       []float32 // S
	local        []float32 // the part of the weights that is not in S
	sent         []float32 // the part of local that was sent; nil in lock-step
	own          []Delta   // own deltas that are not folded, oldest first
	nextCapacity int       // expected entries of the next delta
	made         int       // own steps
	folded       int       // steps of all members in S
	eager        [][]Delta // eager: by member, deltas after folded that are not in S; own ones are in local
	stepBase     []float32 // eager: S and eager deltas at the start of the step
	spare        []Delta   // memory for reuse

	kernels *kernel.Exact
	marks   [block / 8]byte // bits of the weights that may be significant
}

// New starts at weights that are the same on every member. It copies them. It returns Invalid as Check does.
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
		r.eager, r.stepBase = make([][]Delta, cfg.Members), slices.Clone(r.shared)
	}
	return r, nil
}

// State is a replica without its configuration, to continue elsewhere. It does not contain the own deltas after Folded,
// which everybody has.
type State struct {
	Shared, Local, Sent []float32 // Sent: nil without slack
	Made, Folded        int
}

// State is a view of the replica, valid until its next step or fold.
func (r *Replica) State() State {
	return State{Shared: r.shared, Local: r.local, Sent: r.sent, Made: r.made, Folded: r.folded}
}

// Resume continues a replica from a state, to the same bits. It copies the state. own are the deltas that it sent after
// Folded. It returns Invalid for values that do not match.
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

// Made is the number of steps that this member has made.
func (r *Replica) Made() int { return r.made }

// Folded is the number of steps of all members in S.
func (r *Replica) Folded() int { return r.folded }

// Needed is the step up to which all deltas must be folded before the next step.
func (r *Replica) Needed() int { return max(0, r.made-r.cfg.Slack) }

// Shared is S. It must not be changed, and is valid until the next fold.
func (r *Replica) Shared() []float32 { return r.shared }

// Fold adds the deltas of all members of a step to S, in the order of the members. A member that has left has an empty
// delta. It returns Conflict if step is not the next one or this member has not made it, and if a member's delta is
// missing.
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
		r.own = slices.Delete(r.own, 0, 1) // in place, to keep the capacity
	}
	r.folded = step
	for m, deltas := range r.eager {
		if len(deltas) > 0 {
			r.eager[m] = slices.Delete(deltas, 0, 1)
		}
	}
	return nil
}

func (r *Replica) foldable(step int, deltas []Delta) error {
	there := r.Participates(r.cfg.Member, step)
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
		case len(d.Index) > 0 && !r.Participates(m, step):
			return r.conflict("member %d has left, and sends %d entries of step %d", m, len(d.Index), step)
		}
	}
	return nil
}

// add adds a delta times scale. It rounds each product before the addition, so that S has the same bits on every
// processor.
func (r *Replica) add(to []float32, d Delta, scale float32) {
	index, values := d.Index, d.Value[:len(d.Index)]
	for k := 0; k < len(index); {
		if k+rowStride <= len(index) && index[k+rowStride-1]-index[k] == rowStride-1 { // neighbours, because indices ascend
			row, change := to[index[k]:][:rowStride], values[k:][:rowStride]
			for j := range row {
				row[j] += float32(scale * change[j])
			}
			k += rowStride
			continue
		}
		to[index[k]] += float32(scale * values[k])
		k++
	}
}

// rowStride is how many neighbouring weights are added at once.
const rowStride = 4

// Weights writes the weights for the next step into x: S, the eager deltas, and the own part.
func (r *Replica) Weights(x []float32) {
	began := r.shared
	if r.stepBase != nil {
		r.addEagerDeltas()
		began = r.stepBase
	}
	r.kernels.Add(x[:len(began)], began, r.local)
}

// Settle ends a round after all flushes were folded: the weights are S. It drops the rounding errors. It returns
// Conflict before that.
func (r *Replica) Settle() error {
	if r.folded < r.made {
		return r.conflict("%d of %d steps are folded", r.folded, r.made)
	}
	clear(r.local)
	clear(r.sent)
	return nil
}

// Owed is the sum of the absolute values of this member's unsent updates.
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

// Send ends a step that led to the weights x and returns its delta: the significant entries of the unsent updates. It
// returns Conflict if the step lacked deltas that it needs, and Diverged for values that are not finite; the replica is
// unusable afterwards.
func (r *Replica) Send(x []float32) (Delta, error) {
	return r.send(x, r.cfg.Threshold/math.Sqrt(float64(r.made+1)), r.cfg.Values)
}

// Flush is Send of all unsent updates, for the last step of a round. After all flushes are folded, Settle makes all
// members equal.
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
	if r.stepBase != nil {
		began = r.stepBase
	}
	d = r.NewDelta()
	d.Index, d.Value = slices.Grow(d.Index, r.nextCapacity), slices.Grow(d.Value, r.nextCapacity)
	d = r.significant(d, x, began, threshold)
	r.nextCapacity = d.Len() + d.Len()/8
	if k := slices.IndexFunc(d.Value, notFinite); k >= 0 {
		return d, &disdel.Error{
			Kind: disdel.Diverged, Op: fmt.Sprintf("exchange updates of member %d", r.cfg.Member),
			Msg:  fmt.Sprintf("step %d changes weight %d by %v", r.made, d.Index[k], d.Value[k]),
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	if d.Values = values; formatBytes[values] != asFloat32 { // float32 needs no rounding
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

// notFinite tells whether a value is infinite or NaN.
func notFinite(v float32) bool { return v-v != 0 }

// block is how many weights are processed together.
const block = 4096

// significant moves the change of x since the start of the step into local and adds the significant entries to d. The
// kernel processes all weights and marks candidates by a threshold that is not higher; only those are checked one by
// one.
func (r *Replica) significant(d Delta, x, began []float32, threshold float64) Delta {
	factor := roundDown(threshold)
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

// take adds the significant ones of up to 64 marked weights to d.
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
		// A product instead of a quotient: for a weight of 0 every nonzero sum is sent, and a sum of 0 never is.
		if math.Abs(float64(owed)) <= threshold*math.Abs(float64(x[i])) {
			continue
		}
		index[n], value[n] = int32(i), owed
		n++
	}
	d.Index, d.Value = index[:n], value[:n]
	return d
}

// roundDown is the largest float32 that is not above v, which must not be negative. Rounding is monotonic, so a change
// below the rounded product of it and a weight is below the exact product of v too.
func roundDown(v float64) float32 {
	f := float32(v)
	if float64(f) > v {
		f = math.Nextafter32(f, 0)
	}
	return f
}

// AddEager lets the next steps use another member's delta of a step that cannot be folded yet. A member's deltas must
// come in order. It returns Conflict for other steps, and if members are not eager.
func (r *Replica) AddEager(member, step int, d Delta) error {
	if r.eager == nil || member == r.cfg.Member || member < 0 || member >= r.cfg.Members ||
		step != r.NewestStep(member)+1 {
		return r.conflict("step %d of member %d is ahead of %d folded ones", step, member, r.folded)
	}
	r.eager[member] = append(r.eager[member], d)
	return nil
}

// Next is a member's delta of the next step to fold, if the replica has it already.
func (r *Replica) Next(member int) (d Delta, ok bool) {
	switch {
	case member == r.cfg.Member && len(r.own) > 0:
		return r.own[0], true
	case r.eager != nil && len(r.eager[member]) > 0:
		return r.eager[member][0], true
	}
	return d, false
}

// NewestStep is the newest step of another member that the next step starts with.
func (r *Replica) NewestStep(member int) int {
	if r.eager == nil {
		return r.folded
	}
	return r.folded + len(r.eager[member])
}

// addEagerDeltas sets stepBase to S and the eager deltas, in the order of members and steps.
func (r *Replica) addEagerDeltas() {
	copy(r.stepBase, r.shared)
	for _, deltas := range r.eager {
		for _, d := range deltas {
			r.add(r.stepBase, d, r.scale)
		}
	}
}

// Leave ends this member's last step: it returns a delta with all unsent updates. The others continue without it after
// SetLastStep. After it has folded the others' last steps it has the same weights as they.
func (r *Replica) Leave(x []float32) (Delta, error) {
	d, err := r.Flush(x)
	if err == nil {
		r.SetLastStep(r.cfg.Member, r.made)
	}
	return d, err
}

// SetLastStep sets the last step of a member. It must be called before a later step is folded. A mean still divides by
// all members of the round: a step with fewer members has fewer rows and moves the weights less. The remaining members
// make more steps, so each batch moves the weights as far as before.
func (r *Replica) SetLastStep(member, step int) { r.last[member] = step }

// Participates tells whether a member takes part in a step, as far as is known.
func (r *Replica) Participates(member, step int) bool {
	return r.last[member] == 0 || step <= r.last[member]
}

// NewDelta returns an empty delta, in recycled memory if there is some.
func (r *Replica) NewDelta() Delta {
	d := Delta{Index: []int32{}}
	if n := len(r.spare); n > 0 {
		d.Index, d.Value = r.spare[n-1].Index[:0], r.spare[n-1].Value[:0]
		r.spare = r.spare[:n-1]
	}
	return d
}

// Recycle reuses the memory of deltas that nobody needs any more.
func (r *Replica) Recycle(all []Delta) {
	for _, d := range all {
		if cap(d.Index) > 0 && len(r.spare) <= 2*r.cfg.Members {
			r.spare = append(r.spare, d)
		}
	}
}
