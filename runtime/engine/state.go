package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// StateOf lists the arrays that Engine.State promises, for an engine of s. at gives access to the values of parameter
// param of the graph's Params: those of the weights for moment -1, else of that moment. steps is the engine's count of
// steps.
func StateOf(s *Spec, steps *int, at func(param, moment int) Values) []Array {
	var out []Array
	params := s.Graph.Params()
	for i, p := range params {
		role := Weight
		switch {
		case p.Frozen:
			role = Frozen
		case !p.Trainable:
			role = Statistic
		}
		out = append(out, NewArray(p.Name, p.Shape, role, at(i, -1)))
	}
	if !s.Training {
		return out
	}
	out = append(out, NewArray(StepCount, []int{1}, Moment, StepValues(steps)))
	for m, name := range s.Optimizer.MomentNames() {
		for i, p := range params {
			if p.Trainable {
				out = append(out, NewArray(p.Name+"."+name, p.Shape, Moment, at(i, m)))
			}
		}
	}
	return out
}

// StepValues reads and writes an engine's count of steps.
func StepValues(steps *int) Values { return count{steps} }

type count struct{ steps *int }

// ReadAt implements Values.
func (c count) ReadAt(dst []float32, _ int) {
	if len(dst) > 0 {
		dst[0] = float32(*c.steps)
	}
}

// WriteAt implements Values. An average of several counts need not be whole.
func (c count) WriteAt(src []float32, _ int) {
	if len(src) > 0 {
		*c.steps = int(math.Round(float64(src[0])))
	}
}

// Role is the purpose of an array in training.
type Role uint8

// The roles.
const (
	Weight    Role = 1 + iota // changed by its gradient
	Statistic                 // changed by what passes: batch norms' running mean and variance
	Moment                    // of the optimiser, and its count of steps
	Residual                  // what a lossy codec owes to the weights
	Local                     // a worker's own: no mean is taken of it
	Frozen                    // a weight or a statistic of a frozen layer: nothing changes it
)

// String names the role in messages.
func (r Role) String() string {
	names := [...]string{
		Weight: "weight", Statistic: "statistic", Moment: "moment", Residual: "residual", Local: "local",
		Frozen: "frozen weight",
	}
	if int(r) >= len(names) || names[r] == "" {
		return "unknown role"
	}
	return names[r]
}

// StepCount is the name of the array, of shape [1], that counts an optimiser's steps.
const StepCount = "step"

// Values gives access to the values of an array in an engine's own layout. Indices are of PyTorch's layout. The caller
// has checked the range, and that written values are finite.
type Values interface {
	ReadAt(dst []float32, at int)
	WriteAt(src []float32, at int)
}

// Floats are Values that an engine keeps in PyTorch's layout.
type Floats []float32

// ReadAt implements Values.
func (f Floats) ReadAt(dst []float32, at int) { copy(dst, f[at:]) }

// WriteAt implements Values.
func (f Floats) WriteAt(src []float32, at int) { copy(f[at:], src) }

// Array is one array of an engine's state. It can be read and set without a copy of the others, until the engine is
// closed.
type Array struct {
	Name  string // as PyTorch has it: "fc1.weight", its moment "fc1.weight.exp_avg"
	Shape []int  // PyTorch's layout: convolutions [out in/groups kh kw], dense layers [out in]
	Role  Role

	values Values
	floats Floats // the same values, if they can be read without a copy
}

// NewArray makes an array of a backend.
func NewArray(name string, shape []int, role Role, values Values) Array {
	return Array{Name: name, Shape: shape, Role: role, values: values}
}

// NewFloatArray makes an array whose values are kept in PyTorch's layout.
func NewFloatArray(name string, shape []int, role Role, values Floats) Array {
	return Array{Name: name, Shape: shape, Role: role, values: values, floats: values}
}

// Len is the number of values.
func (a Array) Len() int { return model.Shape(a.Shape).Len() }

// ReadAt copies the values from index at on into dst. It returns Invalid for a range outside of the array.
func (a Array) ReadAt(dst []float32, at int) error {
	if err := a.within(len(dst), at); err != nil {
		return err
	}
	a.values.ReadAt(dst, at)
	return nil
}

// WriteAt sets the values from index at on to those of src. It returns Invalid for a range outside of the array and
// Diverged for values that are not finite; then nothing was changed.
func (a Array) WriteAt(src []float32, at int) error {
	if err := a.within(len(src), at); err != nil {
		return err
	}
	if err := finite(a.Name, src); err != nil {
		return err
	}
	a.values.WriteAt(src, at)
	return nil
}

func (a Array) within(n, at int) error {
	if at < 0 || n > a.Len()-at {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "access state",
			Msg: fmt.Sprintf("values %d to %d of %s, which has %d", at, at+n, a.Name, a.Len()),
		}
	}
	return nil
}

// Copy returns a copy of the array.
func (a Array) Copy() disdel.Tensor {
	t := disdel.Tensor{Name: a.Name, Shape: a.Shape, Data: make([]float32, a.Len())}
	a.values.ReadAt(t.Data, 0)
	return t
}

// View returns the values of an array of NewFloatArray without a copy, and a copy of another array's. They are only to
// be read, and only until the engine's next call.
func (a Array) View() disdel.Tensor {
	if a.floats == nil {
		return a.Copy()
	}
	return disdel.Tensor{Name: a.Name, Shape: a.Shape, Data: a.floats}
}

// Set copies t. It returns Corrupt for another name or shape and Diverged for values that are not finite; then nothing
// was changed.
func (a Array) Set(t disdel.Tensor) error {
	if err := a.accepts(t); err != nil {
		return err
	}
	a.values.WriteAt(t.Data, 0)
	return nil
}

func (a Array) accepts(t disdel.Tensor) error {
	if t.Name != a.Name || !slices.Equal(t.Shape, a.Shape) || len(t.Data) != a.Len() {
		return &disdel.Error{
			Kind: disdel.Corrupt, Op: "set " + a.plural(),
			Msg: fmt.Sprintf("%s %v where %s %v belongs", t.Name, t.Shape, a.Name, a.Shape),
		}
	}
	return finite(a.Name, t.Data)
}

// plural is what messages call arrays like this one.
func (a Array) plural() string {
	if a.Role == Moment {
		return "optimiser state"
	}
	return "weights"
}

func finite(name string, values []float32) error {
	if kernel.Finite(values) {
		return nil
	}
	for k, v := range values {
		if v-v != 0 { // as of NaN and of what is infinite
			return &disdel.Error{
				Kind: disdel.Diverged, Op: "set weights",
				Msg: fmt.Sprintf("value %d of %s is not finite", k, name),
			}
		}
	}
	return nil
}

// Of returns the arrays of some roles, in their order.
func Of(all []Array, roles ...Role) []Array {
	var out []Array
	for _, a := range all {
		if slices.Contains(roles, a.Role) {
			out = append(out, a)
		}
	}
	return out
}

// Copies returns copies of arrays, in their order.
func Copies(arrays []Array) disdel.Weights {
	out := make(disdel.Weights, len(arrays))
	for i, a := range arrays {
		out[i] = a.Copy()
	}
	return out
}

// Weights returns copies of an engine's weights and statistics, frozen ones too, in the order of the graph's Params and
// PyTorch's layouts.
func Weights(e Engine) disdel.Weights { return Copies(Of(e.State(), Weight, Statistic, Frozen)) }

// SetWeights sets what Weights returned. It returns Corrupt for other names, shapes or another order and Diverged for
// values that are not finite; then nothing was changed.
func SetWeights(e Engine, w disdel.Weights) error {
	return set("set weights", "network", Of(e.State(), Weight, Statistic, Frozen), w)
}

// Trained returns copies of an engine's weights and statistics without those of frozen layers, in the order of Weights.
func Trained(e Engine) disdel.Weights { return Copies(Of(e.State(), Weight, Statistic)) }

// TrainedViews returns what Trained returns, without copies where Array.View makes none: for a program in a process of
// its own, the store reads the memory that both share.
func TrainedViews(e Engine) disdel.Weights {
	var out disdel.Weights
	for _, a := range Of(e.State(), Weight, Statistic) {
		out = append(out, a.View())
	}
	return out
}

// SetTrained sets what Trained returned. It returns Corrupt and Diverged as SetWeights does.
func SetTrained(e Engine, w disdel.Weights) error {
	return set("set weights", "network", Of(e.State(), Weight, Statistic), w)
}

// Moments returns copies of the optimiser's count of steps and moments. An engine for inference has none.
func Moments(e Engine) disdel.Weights { return Copies(Of(e.State(), Moment)) }

// SetMoments sets what Moments returned. It returns Corrupt and Diverged as SetWeights does.
func SetMoments(e Engine, w disdel.Weights) error {
	return set("set optimiser state", "optimiser", Of(e.State(), Moment), w)
}

// set sets all arrays or none.
func set(op, owner string, arrays []Array, w disdel.Weights) error {
	if len(w) != len(arrays) {
		return &disdel.Error{
			Kind: disdel.Corrupt, Op: op,
			Msg: fmt.Sprintf("%d tensors, and the %s has %d", len(w), owner, len(arrays)),
		}
	}
	for i, a := range arrays {
		if err := a.accepts(w[i]); err != nil {
			return err
		}
	}
	for i, a := range arrays {
		a.values.WriteAt(w[i].Data, 0)
	}
	return nil
}
