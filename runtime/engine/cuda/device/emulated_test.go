//go:build nvidia

package device_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/cuda/device"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// onLibrary names the folder of the library that stands for CUDA's in the process that has it.
const onLibrary = "DISDEL_TEST_EMULATED_CUDA"

// emulation is a driver of emulated devices, in the process that has the library that stands for CUDA's. In another
// one the test is part of TestOnAnEmulatedLibrary.
func emulation(t *testing.T) emulated.Driver {
	t.Helper()
	if os.Getenv(onLibrary) == "" {
		t.Skip("TestOnAnEmulatedLibrary runs this")
	}
	program, err := emulated.Compile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return emulated.Driver{Program: program, Library: true}
}

// All of this package's tests once more, in a process that finds another library where it looks for CUDA's: which calls
// are made, in which order, on which stream, and what their errors come to.
func TestOnAnEmulatedLibrary(t *testing.T) {
	if os.Getenv(onLibrary) != "" {
		t.Skip("this is the process that has it")
	}
	folder, err := emulated.CompileLibrary(t.TempDir())
	if errors.Is(err, emulated.ErrNoCompiler) {
		t.Skip("calls of CUDA are not tested: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(self, "-test.v", "-test.timeout", "5m")
	run.Env = append(os.Environ(), onLibrary+"="+folder, "LD_LIBRARY_PATH="+folder)
	said, err := run.CombinedOutput()
	if err != nil || !bytes.Contains(said, []byte("--- PASS: TestADeviceKeepsTheBackendsPromises")) {
		t.Errorf("%v\n%s", err, said)
	}
}

func wide(t *testing.T) engine.Spec {
	t.Helper()
	g, err := model.Build(disdel.Network{Input: []int{2, 7, 6}, Classes: 3, Layers: []disdel.Layer{
		{Kind: "conv", Filters: 5, Kernel: 3, Padding: 1},
		{Kind: "batchNorm"},
		{Kind: "maxPool", Kernel: 2},
		{Kind: "dense", Units: 66, Activation: "relu"},
		{Kind: "dropout", Rate: 0.2},
		{Kind: "dense", Units: 70, Activation: "tanh"}, // a library's
		{Kind: "dense", Units: 3, Activation: "softmax"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return engine.Spec{
		Graph: g, BatchSize: 18, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, Training: true, Seed: 3,
	}
}

func batch(g *model.Graph, rows int, seed uint64) dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := dataset.Dense(rows, make([]float32, rows*g.Input().Len()), make([]int32, rows))
	for i := range b.Input.Values {
		b.Input.Values[i] = rng.Float32()*2 - 1
	}
	for i := range b.Target.Classes {
		b.Target.Classes[i] = rng.Int32N(int32(g.Output().Len()))
	}
	return b
}

// trained makes steps on batches that come ahead, of which some are short, and returns losses, state and an evaluation.
func trained(b engine.Backend, s engine.Spec) (losses []float64, state disdel.Weights, err error) {
	e, err := b.New(s)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Init(disdel.Init{Seed: 5}); err != nil {
		return nil, nil, err
	}
	ahead, sizes := e.Ahead(), []int{18, 7, 18, 3, 18}
	if err := ahead.Stage(batch(s.Graph, sizes[0], 0)); err != nil {
		return nil, nil, err
	}
	for i := range sizes {
		m, err := ahead.StepStaged(func() error {
			if i+1 == len(sizes) {
				return nil
			}
			return ahead.Stage(batch(s.Graph, sizes[i+1], uint64(i+1)))
		})
		if err != nil {
			return nil, nil, err
		}
		losses = append(losses, m.Loss)
	}
	m, err := e.Evaluate(batch(s.Graph, 18, 99))
	if err != nil {
		return nil, nil, err
	}
	state = engine.Copies(e.State())
	_, err = e.Predict(batch(s.Graph, 1, 0)) // which says so where the state could not be read
	return append(losses, m.Loss), state, err
}

// Through CUDA's calls comes the same to the bit as through the orders of the emulated device, in every precision, with
// cuBLAS and without, whether copies by the second stream are as late as they may be or there at once.
func TestCallsOfCUDAComeToTheSameBits(t *testing.T) {
	d, s := emulation(t), wide(t)
	for _, s.Precision = range []disdel.Precision{
		disdel.PrecisionFloat32, disdel.PrecisionTF32, disdel.PrecisionBF16,
	} {
		for _, library := range []bool{false, true} {
			want, state, err := trained(cuda.Backend{Driver: d, Library: library}, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, eager := range []string{"", "1"} {
				t.Setenv("DISDEL_EMULATED_EAGER", eager)
				got, mine, err := trained(cuda.Backend{Driver: device.Driver{}, Library: library}, s)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, library %v, eager %q: losses %v, %v; want %v", s.Precision, library, eager, got, err, want)
					continue
				}
				for i, w := range state {
					if !slices.Equal(mine[i].Data, w.Data) {
						t.Errorf("%s, library %v, eager %q: %s has other bits", s.Precision, library, eager, w.Name)
					}
				}
			}
		}
	}
}

// Copies of more than the pinned memory holds wait for it: none is overwritten before the device has taken it.
func TestCopiesLargerThanPinnedMemoryAreWhole(t *testing.T) {
	emulation(t)
	d, err := device.Driver{}.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // what was read is what matters
	nothing, err := d.Prepare(nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 21_000_003
	at, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	src, dst := make([]byte, n), make([]byte, n)
	rng := rand.NewChaCha8([32]byte{7})
	for _, turn := range []driver.Turn{driver.InOrder, driver.Ahead, driver.Ahead} {
		_, _ = rng.Read(src) // it returns no error
		want := slices.Clone(src)
		err := d.Write(at, src, turn)
		clear(src) // it has been read
		if err == nil {
			err = d.Run(nothing)
		}
		if err == nil {
			err = d.Read(dst, at)
		}
		if err != nil || !bytes.Equal(dst, want) {
			t.Errorf("turn %d: %v, and the bytes are the same: %v", turn, err, bytes.Equal(dst, want))
		}
	}
}

// Whichever call of CUDA fails, the error has the kind of the result, the call and CUDA's word for it as evidence, and
// the context is gone: the next one gets the device.
func TestEveryCallOfCUDAMayFail(t *testing.T) {
	emulation(t)
	s := wide(t)
	s.Precision = disdel.PrecisionTF32
	t.Setenv("DISDEL_EMULATED_ALONE", "1")
	t.Setenv("DISDEL_EMULATED_FAULT", "")
	try := func() error {
		_, _, err := trained(cuda.Backend{Driver: device.Driver{}, Library: true}, s)
		return err
	}
	const memory, image, address, failed, lost = 2, 200, 700, 719, 999
	for _, c := range []struct {
		call   string
		result int
		cause  driver.Cause
	}{ // results from 700 to 799 stay with the context, so that later calls tell them too; the others are told once
		{"cuDeviceGetCount", lost, driver.NoDevice},
		{"cuCtxCreate_v2", memory, driver.NoMemory},
		{"cuCtxCreate_v2", lost, driver.NoDevice},
		{"cuModuleLoadData", memory, driver.NoMemory},
		{"cuModuleLoadData", image, driver.BadLaunch},
		{"cuModuleGetFunction", 500, driver.BadLaunch},
		{"cuEventCreate", lost, driver.DeviceLost},
		{"cuStreamCreate", memory, driver.NoMemory},
		{"cuMemHostAlloc", memory, driver.NoHostMemory},
		{"cuMemAlloc_v2", memory, driver.NoMemory},
		{"cuMemcpyHtoDAsync_v2", lost, driver.DeviceLost},
		{"cuMemcpyDtoHAsync_v2", failed, driver.BadLaunch},
		{"cuMemcpyDtoHAsync_v2", lost, driver.DeviceLost},
		{"cuStreamBeginCapture_v2", lost, driver.DeviceLost},
		{"cuLaunchKernel", 701, driver.BadLaunch},
		{"cuLaunchKernel", 1, driver.BadLaunch},
		{"cuStreamEndCapture", failed, driver.BadLaunch},
		{"cuStreamEndCapture", lost, driver.DeviceLost},
		{"cuGraphInstantiateWithFlags", memory, driver.NoMemory},
		{"cuGraphLaunch", failed, driver.BadLaunch},
		{"cuGraphLaunch", memory, driver.NoMemory},
		{"cuEventRecord", lost, driver.DeviceLost},
		{"cuStreamWaitEvent", lost, driver.DeviceLost},
		{"cuStreamSynchronize", address, driver.BadLaunch},
		{"cuStreamSynchronize", 214, driver.DeviceLost}, // an uncorrectable error of memory
		{"cuCtxSetCurrent", lost, driver.DeviceLost},
		{"cublasCreate_v2", 3, driver.NoMemory},
		{"cublasSetStream_v2", 1, driver.BadLaunch},
		{"cublasSgemmStridedBatched", 13, driver.BadLaunch},
	} {
		for at := 1; ; at += 1 + at/5 { // the first ones each, and of the others some
			t.Setenv("DISDEL_EMULATED_FAULT", c.call+" "+strconv.Itoa(at)+" "+strconv.Itoa(c.result))
			err := try()
			if err == nil {
				if at == 1 {
					t.Errorf("nothing calls %s", c.call)
				}
				break
			}
			var fault *driver.Fault
			if !errors.As(err, &fault) || fault.Cause != c.cause || fault.Said == "" || !errors.Is(err, c.cause.Kind()) {
				t.Errorf("%s %d: %v (%+v), want %v", c.call, at, err, fault, c.cause)
				break // what stays wrong, as a device that somebody still holds, would be for ever
			}
			if c.call != "cuDeviceGetCount" && fault != nil && fault.Call == "" {
				t.Errorf("%s %d: %v does not say which call it was", c.call, at, err)
			}
			typed := disdel.AsError(err)
			if typed == nil || (typed.Code == disdel.CodeDeviceMemory) != (c.cause == driver.NoMemory) {
				t.Errorf("%s %d: %+v", c.call, at, typed)
			}
		}
	}
	t.Setenv("DISDEL_EMULATED_FAULT", "")
	if err := try(); err != nil {
		t.Errorf("after all of that: %v", err)
	}
}

// What is taken of a device, by the engine and for cuBLAS, is what the footprint says: a device that has it is enough,
// and one that has a byte less is not.
func TestADeviceNeedsNoMoreThanTheFootprint(t *testing.T) {
	emulation(t)
	b, s := cuda.Backend{Driver: device.Driver{}, Library: true, Workspace: device.Workspace}, wide(t)
	f, err := b.Footprint(s)
	if err != nil {
		t.Fatal(err)
	}
	needs := f.In(footprint.Device)
	for _, lacking := range []disdel.Bytes{0, 1} {
		t.Setenv("DISDEL_EMULATED_MEMORY", strconv.FormatInt(int64(needs-lacking), 10))
		_, _, err := trained(b, s)
		var fault *driver.Fault
		switch lacks := errors.As(err, &fault); {
		case lacking == 0 && err != nil:
			t.Errorf("with %v: %v", needs, err)
		case lacking == 1 && (!lacks || fault.Cause != driver.NoMemory || fault.Wanted != device.Workspace ||
			fault.Taken+fault.Wanted != needs || fault.Number != 2):
			t.Errorf("with a byte less than %v: %v", needs, err)
		}
	}
}

// What a device lacks is told in numbers.
func TestAllocationsThatDoNotFitAreToldInNumbers(t *testing.T) {
	emulation(t)
	t.Setenv("DISDEL_EMULATED_MEMORY", "4096")
	_, _, err := trained(cuda.Backend{Driver: device.Driver{}}, wide(t))
	var fault *driver.Fault
	if !errors.As(err, &fault) || fault.Cause != driver.NoMemory || fault.Free != 4096 || fault.Wanted <= 4096 ||
		fault.Number != 1 || !strings.Contains(err.Error(), "OutOfMemory") {
		t.Errorf("%v", err)
	}
}
