//go:build nvidia

package device

// #include <cuda.h>
import "C"

import (
	"fmt"

	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// failure is a result of a call that is not cu's.
type failure int

// Error names the result as CUDA's headers number it.
func (f failure) Error() string { return fmt.Sprintf("CUresult %d", int(f)) }

func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return failure(r)
}

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
