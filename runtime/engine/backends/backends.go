// Package backends is the table of the backends that disdel brings. The backend native computes networks that name no
// backend. The backend gorgonia also computes networks of a program's own, sparse computes models of sparse rows, and
// python users' Python programs. Programs that are built with an engine for GPUs (package gpu) have that, too.
//
// Main programs make one and pass it down: to the host of their actions, and to the estimator, which asks the backends
// for their footprints. It refuses nothing. Invariant: its names are those that a job file may have, in their order,
// and of GPUs the one that resources.device stands for.
package backends

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/gorgonia"
	"github.com/disdel/disdel/runtime/engine/gpu"
	"github.com/disdel/disdel/runtime/engine/native"
	"github.com/disdel/disdel/runtime/engine/python"
	"github.com/disdel/disdel/runtime/engine/sparse"
)

// Standard is the table of a program; own is its own network, nil where it has none.
func Standard(own *gorgonia.Network) engine.Table {
	return engine.Table{
		Backends: append([]engine.Backend{
			native.Backend{}, gorgonia.Backend{Own: own}, sparse.Backend{}, python.Backend{},
		}, gpu.Backends()...),
		Custom: disdel.BackendGorgonia, Sparse: disdel.BackendSparse, Programs: disdel.BackendPython,
	}
}
