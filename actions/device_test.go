package actions

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
	"github.com/disdel/disdel/runtime/engine/native"
)

// onDeviceBackend is the native backend as it would be with its slab on a GPU, and keeps to the share of it that it
// is given.
type onDeviceBackend struct{ engine.Backend }

func (onDeviceBackend) Name() string { return disdel.BackendCUDA }

func (b onDeviceBackend) New(s engine.Spec) (engine.Engine, error) {
	e, err := b.Backend.New(s)
	if err != nil {
		return nil, err
	}
	on := deviceEngine{e}
	if needs := on.Footprint().In(footprint.Device); s.Device > 0 && needs > s.Device {
		e.Close() //nolint:errcheck // it is not used
		return nil, &disdel.Error{
			Kind: disdel.OOM, Code: disdel.CodeDeviceMemory, Op: "make engine", Msg: "the share is " + s.Device.String(),
		}
	}
	return on, nil
}

type deviceEngine struct{ engine.Engine }

func (e deviceEngine) Footprint() engine.Footprint {
	f := e.Engine.Footprint()
	f.Parts = append([]footprint.Part(nil), f.Parts...)
	for i := range f.Parts {
		if f.Parts[i].Memory == footprint.Host {
			f.Parts[i].Memory = footprint.Device
		}
	}
	return f
}

// What an engine holds of a GPU is in the result and in the heartbeats, the share that an action has is the engine's
// bound, and a lack of it says that it is the device's.
func TestTheDevicesMemoryIsToldAndBounded(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, engine.Table{Backends: []engine.Backend{onDeviceBackend{native.Backend{}}}})
	defer h.Close()
	req := b.train(0)
	req.Backend, req.Device = disdel.BackendCUDA, disdel.GB
	res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req)
	if err != nil || res.Usage.Device == 0 {
		t.Fatalf("%v of the device, %v", res.Usage.Device, err)
	}
	seen, err := b.board.Progress(t.Context(), "job-1")
	if err != nil || len(seen) != 1 || seen[0].Device != res.Usage.Device {
		t.Errorf("heartbeats tell %+v, %v; want %v", seen, err, res.Usage.Device)
	}
	if beat := seen[0].Beat(0); beat.Device != res.Usage.Device {
		t.Errorf("the record would keep %v", beat.Device)
	}
	b.forget()
	req.Attempt, req.Device = 2, res.Usage.Device-1
	_, err = ask[disdel.TrainResult](t, h, disdel.TaskTrain, req)
	if e := disdel.AsError(err); e == nil || e.Kind != disdel.OOM || e.Code != disdel.CodeDeviceMemory {
		t.Errorf("a share that is too small: %v", err)
	}
	evaluate := disdel.EvaluateRequest{
		Job: "job-1", Network: b.net, Data: b.data, Rows: disdel.RowRange{End: 20}, BatchSize: 16, Loss: "crossEntropy",
		Threads: 1, Store: b.store, Backend: disdel.BackendCUDA, Device: 1,
	}
	_, err = ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluate)
	if e := disdel.AsError(err); e == nil || e.Code != disdel.CodeDeviceMemory {
		t.Errorf("an evaluation with a share that is too small: %v", err)
	}
}
