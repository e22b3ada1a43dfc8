package emulated

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// device is a process that takes orders; see main.cuh.
type device struct {
	process  *exec.Cmd
	orders   io.WriteCloser
	answers  *bufio.Reader
	output   bytes.Buffer // on standard error
	kernels  map[string]uint64
	programs [][]byte
	waiting  [][]byte // orders that nothing has been read behind yet
	ahead    [][]byte // what was written ahead and need not be there yet
	eager    bool
	number   int // of the machine's
	limit    disdel.Bytes
	taken    disdel.Bytes
	shared   *Shared // with others; nil: nobody
	library  bool
	calls    int   // of Alloc
	lost     error // of the first order that was not taken; nothing works after it
}

func start(d Driver, number int) (*device, error) {
	limit := max(0, d.memory()-d.Held)
	args := []string{fmt.Sprint(int64(limit))}
	if d.Backwards {
		args = append(args, "backwards")
	}
	dev := &device{
		process: exec.Command(d.Program, args...), kernels: map[string]uint64{}, number: number, limit: limit,
		shared: d.Shared, library: d.Library, eager: d.Eager,
	}
	dev.process.Stderr = &dev.output
	var err error
	if dev.orders, err = dev.process.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := dev.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	dev.answers = bufio.NewReader(answers)
	for i, name := range names() {
		dev.kernels[name] = uint64(i)
	}
	return dev, dev.process.Start()
}

// order is a letter and numbers, as the process reads them.
func order(letter byte, numbers ...uint64) []byte {
	out := []byte{letter}
	for _, n := range numbers {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	return out
}

// product is a product as an order.
func product(p driver.Product) []byte {
	flag := func(v bool) uint64 {
		if v {
			return 1
		}
		return 0
	}
	numbers := []uint64{uint64(p.A), uint64(p.B), uint64(p.C)}
	for _, n := range []int{p.M, p.N, p.K, p.LDA, p.LDB, p.LDC} {
		numbers = append(numbers, uint64(n))
	}
	numbers = append(numbers, flag(p.TransA), flag(p.TransB))
	for _, n := range []int{p.StrideA, p.StrideB, p.StrideC, p.Batch} {
		numbers = append(numbers, uint64(n))
	}
	return order('G', append(numbers, flag(p.Add), flag(p.TF32))...)
}

// tell sends orders, and returns a Fault once the process has ended.
func (d *device) tell(orders ...[]byte) error {
	for _, o := range orders {
		if d.lost != nil {
			return d.lost
		}
		if _, err := d.orders.Write(o); err != nil {
			return d.lose(err)
		}
	}
	return nil
}

// queue has orders wait until something is read: a device, too, does what it is told later.
func (d *device) queue(orders ...[]byte) error {
	d.waiting = append(d.waiting, orders...)
	return d.lost
}

// flush sends what waits.
func (d *device) flush() error {
	orders := d.waiting
	d.waiting = nil
	return d.tell(orders...)
}

// hear reads an answer.
func (d *device) hear(into []byte) error {
	if d.lost != nil {
		return d.lost
	}
	if _, err := io.ReadFull(d.answers, into); err != nil {
		return d.lose(err)
	}
	return nil
}

// lose waits for the process, whose last words are the evidence.
func (d *device) lose(cause error) error {
	_ = d.orders.Close()
	if err := d.process.Wait(); err != nil {
		cause = err
	}
	output := strings.TrimSpace(d.output.String() + " " + cause.Error())
	d.lost = &driver.Fault{Cause: driver.DeviceLost, Said: output}
	return d.lost
}

// Alloc implements driver.Device.
func (d *device) Alloc(n disdel.Bytes) (driver.Pointer, error) {
	d.calls++
	if d.shared != nil {
		if free, ok := d.shared.take(d.number, n, d.limit); !ok {
			return 0, d.noRoom(n, free)
		}
	}
	var answer [8]byte
	if err := d.tell(order('A', uint64(n))); err != nil {
		return 0, err
	}
	if err := d.hear(answer[:]); err != nil {
		return 0, err
	}
	at := driver.Pointer(binary.LittleEndian.Uint64(answer[:]))
	if at == 0 {
		d.giveBack(n)
		return 0, d.noRoom(n, d.limit-d.taken)
	}
	d.taken += n
	return at, nil
}

func (d *device) noRoom(n, free disdel.Bytes) error {
	return &driver.Fault{
		Cause: driver.NoMemory, Device: d.number, Call: "allocation", Number: d.calls, Wanted: n, Taken: d.taken, Free: free,
	}
}

// giveBack counts memory as free again for the others.
func (d *device) giveBack(n disdel.Bytes) {
	if d.shared == nil || n == 0 {
		return
	}
	d.shared.mu.Lock()
	defer d.shared.mu.Unlock()
	d.shared.taken[d.number] -= n
}

// Write implements driver.Device.
func (d *device) Write(dst driver.Pointer, src []byte, turn driver.Turn) error {
	o := append(order('W', uint64(dst), uint64(len(src))), src...)
	switch {
	case turn == driver.InOrder:
		return d.queue(o)
	case d.eager:
		return d.tell(o)
	}
	d.ahead = append(d.ahead, o)
	return d.lost
}

// Read implements driver.Device.
func (d *device) Read(dst []byte, src driver.Pointer) error {
	if err := d.flush(); err != nil {
		return err
	}
	if err := d.tell(order('R', uint64(src), uint64(len(dst)))); err != nil {
		return err
	}
	return d.hear(dst)
}

// Prepare implements driver.Device.
func (d *device) Prepare(launches []driver.Launch) (driver.Program, error) {
	var out []byte
	for _, l := range launches {
		if l.Product != nil {
			if !d.library {
				return 0, &driver.Fault{Cause: driver.BadLaunch, Call: "product", Said: "there is no library of products"}
			}
			out = append(out, product(*l.Product)...)
			continue
		}
		k, ok := d.kernels[l.Kernel]
		if !ok {
			return 0, &driver.Fault{Cause: driver.BadLaunch, Call: l.Kernel, Said: "there is no such kernel"}
		}
		out = append(out, order('L', k, uint64(l.Grid[0]), uint64(l.Grid[1]), uint64(l.Grid[2]), uint64(len(l.Args)))...)
		out = append(out, l.Args...)
	}
	d.programs = append(d.programs, out)
	return driver.Program(len(d.programs) - 1), nil
}

// Run implements driver.Device.
func (d *device) Run(p driver.Program) error {
	late := d.ahead
	d.ahead = nil
	return d.queue(append(late, d.programs[p])...)
}

// Close implements driver.Device.
func (d *device) Close() error {
	d.giveBack(d.taken)
	d.taken = 0
	if d.lost != nil {
		return nil // its memory went with it
	}
	if err := d.flush(); err != nil {
		return nil // the same
	}
	_ = d.orders.Close()
	if err := d.process.Wait(); err != nil {
		d.lost = &driver.Fault{Cause: driver.DeviceLost, Said: strings.TrimSpace(d.output.String() + " " + err.Error())}
		return d.lost
	}
	d.lost = &driver.Fault{Cause: driver.DeviceLost, Said: "it was closed"}
	return nil
}
