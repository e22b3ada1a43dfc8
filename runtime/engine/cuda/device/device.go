//go:build nvidia

package device

// #include <cuda.h>
import "C"

import (
	"cmp"
	"runtime"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/cuda/ptx"
)

// device is a context of one device. Programs run on one stream, and what is written ahead goes by another, beside
// them; the next program waits for an event behind it.
type device struct {
	index     int
	context   cu.CUContext
	steps     queue // of programs, and of copies in their order
	copies    queue // of what is written ahead
	ahead     cu.Event
	fresh     bool // something was written ahead since the last program
	module    cu.Module
	matrix    bool           // the kernels that take matrix units are loaded, too
	blas      unsafe.Pointer // cuBLAS, once a product has been asked for
	functions map[string]cu.Function
	graphs    []C.CUgraphExec
	calls     int // of take
	taken     disdel.Bytes
}

func open(index int) (*device, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := &device{index: index, functions: map[string]cu.Function{}}
	number, err := cu.GetDevice(index)
	if err == nil {
		d.context, err = number.MakeContext(cu.SchedAuto)
	}
	if err != nil {
		return nil, unopened(index, err)
	}
	if err := d.ready(); err != nil {
		_ = d.context.Destroy() // what could not be made is what matters
		return nil, err
	}
	return d, nil
}

// ready loads the kernels and takes what copies and launches need.
func (d *device) ready() (err error) {
	if d.module, err = d.load(ptx.Text(), kernel.Names()); err != nil {
		return err
	}
	if d.ahead, err = cu.MakeEvent(cu.DisableTiming); err != nil {
		return d.fault("make event", err)
	}
	if err := d.steps.open(d); err != nil {
		return err
	}
	return d.copies.open(d)
}

// load loads kernels of a text.
func (d *device) load(text string, names []string) (cu.Module, error) {
	m, err := cu.LoadData(text)
	if err != nil {
		return m, d.fault("load kernels", err)
	}
	for _, name := range names {
		if d.functions[name], err = m.Function(name); err != nil {
			return m, d.fault(name, err)
		}
	}
	return m, nil
}

// loadMatrix loads the kernels that take matrix units, once launches name one: older devices have none, and loading
// takes time. The context keeps them.
func (d *device) loadMatrix(launches []driver.Launch) error {
	names := kernel.MatrixNames()
	asked := slices.ContainsFunc(launches, func(l driver.Launch) bool { return slices.Contains(names, l.Kernel) })
	if d.matrix || !asked {
		return nil
	}
	_, err := d.load(ptx.Matrix(), names)
	d.matrix = err == nil
	return err
}

// on runs f on a thread whose context is the device's.
func (d *device) on(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		return d.fault("set context", err)
	}
	return f()
}

// Alloc implements driver.Device.
func (d *device) Alloc(n disdel.Bytes) (p driver.Pointer, err error) {
	err = d.on(func() (err error) {
		p, err = d.take(n)
		return err
	})
	return p, err
}

// take takes memory, on a thread whose context is the device's.
func (d *device) take(n disdel.Bytes) (driver.Pointer, error) {
	d.calls++
	at, err := cu.MemAlloc(int64(n))
	if err != nil {
		return 0, d.noRoom(n, err)
	}
	d.taken += n
	return driver.Pointer(at), nil
}

// Write implements driver.Device.
func (d *device) Write(dst driver.Pointer, src []byte, turn driver.Turn) error {
	return d.on(func() error {
		if turn == driver.Ahead {
			d.fresh = true
			return d.copies.write(d, dst, src)
		}
		return d.steps.write(d, dst, src)
	})
}

// Read implements driver.Device.
func (d *device) Read(dst []byte, src driver.Pointer) error {
	return d.on(func() error { return d.steps.read(d, dst, src) })
}

// launch puts a kernel on the stream. Its one argument is a struct, and cu takes arguments of 8 bytes, which it lays
// side by side: handed over word by word, they are the struct.
func (d *device) launch(l driver.Launch) error {
	if l.Product != nil {
		return d.multiply(*l.Product)
	}
	f, ok := d.functions[l.Kernel]
	if !ok {
		return &driver.Fault{Cause: driver.BadLaunch, Device: d.index, Call: l.Kernel, Said: "there is no such kernel"}
	}
	words := make([]unsafe.Pointer, len(l.Args)/8)
	for i := range words {
		words[i] = unsafe.Pointer(&l.Args[8*i])
	}
	g := l.Grid
	return d.fault(l.Kernel, f.Launch(g[0], g[1], g[2], kernel.Threads, 1, 1, 0, d.steps.stream, words))
}

// Run implements driver.Device. The graph is the same whatever was written ahead: it is on the stream behind the event.
func (d *device) Run(p driver.Program) error {
	return d.on(func() error {
		if d.fresh {
			if err := d.steps.await(d, &d.copies); err != nil {
				return err
			}
			d.fresh = false
		}
		return d.fault("run", result(C.cuGraphLaunch(d.graphs[p], d.steps.c())))
	})
}

// Close implements driver.Device. The context takes all memory with it, the streams and the event.
func (d *device) Close() error {
	err := d.on(func() error {
		err := cmp.Or(d.copies.wait(d), d.steps.wait(d))
		d.closeLibrary()
		for _, g := range d.graphs {
			C.cuGraphExecDestroy(g)
		}
		C.cuMemFreeHost(d.steps.pinned)
		C.cuMemFreeHost(d.copies.pinned)
		return err
	})
	return cmp.Or(err, d.fault("destroy context", d.context.Destroy())) // whatever went wrong before
}
