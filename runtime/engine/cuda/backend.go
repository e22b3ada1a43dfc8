package cuda

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Backend makes engines on one device.
type Backend struct {
	Driver driver.Driver
	Device int          // its index among those that the driver lists
	Host   disdel.Bytes // what the driver takes of the process's memory, whatever the network
}

// Name implements engine.Backend.
func (Backend) Name() string { return disdel.BackendCUDA }

// Supports implements engine.Backend: what the native backend supports.
func (Backend) Supports(g *model.Graph) error { return plan.Supports(g) }

// Footprint implements engine.Backend. It asks no device.
func (b Backend) Footprint(s engine.Spec) (engine.Footprint, error) {
	m, err := b.lay(s)
	if err != nil {
		return engine.Footprint{}, err
	}
	return m.footprint(), nil
}

// New implements engine.Backend. Beside what engine.Backend says, it returns Unavailable where the device is not there
// and OOM where it has not as much memory; both have a *driver.Fault as their cause.
func (b Backend) New(s engine.Spec) (engine.Engine, error) {
	m, err := b.lay(s)
	if err != nil {
		return nil, err
	}
	if f := m.footprint(); s.Memory > 0 && f.Total()-f.In(device) > s.Memory {
		return nil, &disdel.Error{
			Kind: disdel.OOM, Op: "make engine",
			Msg: fmt.Sprintf("network %s with a batch of %d needs more memory than the action's %v", s.Graph.Name,
				s.BatchSize, s.Memory),
			Hint: "lower training.batchSize or raise the memory limit",
		}
	}
	d, err := b.Driver.Open(b.Device)
	if err != nil {
		return nil, faulty("open device", err)
	}
	e, err := newEngine(s, m, d)
	if err != nil {
		_ = d.Close() // what could not be made is what matters
		return nil, err
	}
	return e, nil
}

// losses are the kernels' losses by the names that jobs have.
var losses = map[string]kernel.LossKind{
	"": kernel.CrossEntropy, "crossEntropy": kernel.CrossEntropy, "binaryCrossEntropy": kernel.BinaryCrossEntropy,
	"mse": kernel.Squares,
}

// lay checks s and lays its memory out.
func (b Backend) lay(s engine.Spec) (*memory, error) {
	if s.BatchSize < 1 {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("a batch of %d rows", s.BatchSize),
		}
	}
	if _, ok := losses[s.Loss]; !ok {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("there is no loss %q", s.Loss),
			Hint: "losses: crossEntropy, binaryCrossEntropy, mse",
		}
	}
	if err := s.OnlyFloat32(disdel.BackendCUDA); err != nil {
		return nil, err
	}
	p, err := plan.New(s.Graph, plan.Spec{
		BatchSize: s.BatchSize, Training: s.Training, Moments: s.Optimizer.Moments(), KeepGrads: s.ClipNorm > 0,
		Exact: true, Plain: true,
	})
	if err != nil {
		return nil, err
	}
	return layMemory(p, b.Host), nil
}
