package cuda

import (
	"fmt"
	"slices"
	"sync"

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
	Pinned disdel.Bytes // of the process's memory, what copies to and from the device go through

	Context   disdel.Bytes // what the driver takes of the device's memory, whatever the network
	Choice    *Choice      // of the device among several; nil: it is Device
	Library   bool         // large plain products go to the driver's library where it has one
	Workspace disdel.Bytes // of the device's memory, what the library works in once there is such a product
}

// precisionOf is what a step's products multiply; evaluations and predictions are float32.
func precisionOf(s engine.Spec) (kernel.Precision, error) {
	if p, ok := precisions[s.Precision]; ok || !s.Training {
		return p, nil
	}
	return 0, &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("there is no precision %q on a GPU", s.Precision),
		Hint: "precisions: float32, tf32, bf16",
	}
}

// precisions are the kernels' by the names that jobs have.
var precisions = map[disdel.Precision]kernel.Precision{
	"": kernel.Float32, disdel.PrecisionFloat32: kernel.Float32, disdel.PrecisionTF32: kernel.TF32,
	disdel.PrecisionBF16: kernel.BF16,
}

// able settles what of the device the engine takes. It returns Unavailable for a device that has no matrix units for
// the precision.
func (b Backend) able(index int, m *memory) error {
	if m.precision == kernel.Float32 && !b.Library {
		return nil
	}
	found, err := b.Driver.Devices()
	if err != nil {
		return faulty("find devices", err)
	}
	i := slices.IndexFunc(found, func(d driver.Info) bool { return d.Index == index })
	if i < 0 {
		return nil // opening it says so
	}
	d := found[i]
	if m.library = b.Library && d.Library; !m.library {
		m.workspace = 0 // which was counted before the device was asked
	}
	if m.precision == kernel.Float32 || d.Capability[0] >= kernel.MatrixCapability {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Code: disdel.CodeNoDevice, Op: "make engine",
		Msg: fmt.Sprintf("device %d, %s of capability %d.%d, has no matrix units for %v", index, d.Name, d.Capability[0],
			d.Capability[1], m.precision),
		Hint: "leave training.precision out, or take a device of capability 8.0 or above",
	}
}

// Name implements engine.Backend.
func (Backend) Name() string { return disdel.BackendCUDA }

// Supports implements engine.Backend: networks whose layers all have kernels here.
func (Backend) Supports(g *model.Graph) error { return supports(g) }

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
	if err := within(m.footprint(), s); err != nil {
		return nil, err
	}
	index, err := b.Choice.of(b, s.Place)
	if err != nil {
		return nil, faulty("find devices", err)
	}
	if err := b.able(index, m); err != nil {
		return nil, err
	}
	d, err := b.Driver.Open(index)
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

// within returns OOM for a network that is known to need more than the action has, of either memory. Of a device's that
// is found out before any of it is taken.
func within(f engine.Footprint, s engine.Spec) error {
	needs := f.In(device)
	switch {
	case s.Memory > 0 && f.Total()-needs > s.Memory:
		return &disdel.Error{
			Kind: disdel.OOM, Op: "make engine",
			Msg: fmt.Sprintf("network %s with a batch of %d needs more memory than the action's %v", s.Graph.Name,
				s.BatchSize, s.Memory),
			Hint: "lower training.batchSize or raise the memory limit",
		}
	case s.Device > 0 && needs > s.Device:
		return &disdel.Error{
			Kind: disdel.OOM, Code: disdel.CodeDeviceMemory, Op: "make engine",
			Msg: fmt.Sprintf("network %s with a batch of %d needs %v of the device's memory, and the action's share is %v",
				s.Graph.Name, s.BatchSize, needs.Beside(s.Device), s.Device.Beside(needs)),
			Hint: fmt.Sprintf("set resources.gpu.memory=%dMB, or lower training.batchSize", needs.MB()),
		}
	}
	return nil
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
	if err := lacksOptimizer(s.Optimizer); err != nil {
		return nil, err
	}
	if err := s.KeepsAll(disdel.BackendCUDA); err != nil {
		return nil, err
	}
	precision, err := precisionOf(s)
	if err != nil {
		return nil, err
	}
	if err := supports(s.Graph); err != nil {
		return nil, err
	}
	p, err := plan.New(s.Graph, plan.Spec{
		BatchSize: s.BatchSize, Training: s.Training, Moments: s.Optimizer.Moments(), KeepGrads: s.ClipNorm > 0,
		Exact: true, Plain: true, Sigmoid: losses[s.Loss] == kernel.BinaryCrossEntropy,
	})
	if err != nil {
		return nil, err
	}
	m := layMemory(p)
	m.host, m.pinned, m.context, m.precision = b.Host, b.Pinned, b.Context, precision
	if b.Library && hasProducts(p) {
		m.workspace = b.Workspace
	}
	return m, nil
}

// Choice is the device that a process computes on once it has computed on one: a warm action stays on its device, where
// its driver has a context and its kernels. The zero value has not chosen. It is safe for concurrent use.
//
// A process that sees one device takes that. Where it sees several, which is so where nobody divides a machine's
// devices among its containers, the workers of a job take one after another.
type Choice struct {
	mu    sync.Mutex
	made  bool
	index int
}

// of is the device for an action at a place among the job's.
func (c *Choice) of(b Backend, place int) (int, error) {
	if c == nil {
		return b.Device, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made {
		return c.index, nil
	}
	found, err := b.Driver.Devices()
	if err != nil {
		return 0, err
	}
	c.made, c.index = true, found[max(0, place)%len(found)].Index
	return c.index, nil
}
