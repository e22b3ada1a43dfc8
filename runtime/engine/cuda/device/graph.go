//go:build nvidia

package device

// #include <cuda.h>
import "C"

import (
	"gorgonia.org/cu"

	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// result is what a call of our own came to, as the errors that cu makes of its calls, whose type is private: cause
// compares both.
func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return like(cu.Success, int(r))
}

// like is a number of another one's type.
func like[R ~int](_ R, n int) R { return R(n) }

// Prepare implements driver.Device: the launches are captured as one graph.
func (d *device) Prepare(launches []driver.Launch) (p driver.Program, err error) {
	err = d.on(func() error {
		if err := d.loadMatrix(launches); err != nil {
			return err
		}
		if err := d.openLibrary(launches); err != nil {
			return err
		}
		if err := result(C.cuStreamBeginCapture(d.steps.c(), C.CU_STREAM_CAPTURE_MODE_RELAXED)); err != nil {
			return d.fault("begin capture", err)
		}
		failed := error(nil)
		for _, l := range launches {
			if failed = d.launch(l); failed != nil {
				break
			}
		}
		var graph C.CUgraph
		ended := result(C.cuStreamEndCapture(d.steps.c(), &graph)) // even of what failed, or the stream stays as it is
		if failed != nil {
			return failed
		}
		if ended != nil {
			return d.fault("end capture", ended)
		}
		defer C.cuGraphDestroy(graph)
		var exec C.CUgraphExec
		if err := result(C.cuGraphInstantiateWithFlags(&exec, graph, 0)); err != nil {
			return d.fault("make graph", err)
		}
		d.graphs = append(d.graphs, exec)
		p = driver.Program(len(d.graphs) - 1)
		return nil
	})
	return p, err
}
