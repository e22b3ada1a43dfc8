package scheduler

import (
	"cmp"
	"fmt"
	"sort"

	"github.com/disdel/disdel"
)

// perAccelerator is how many actions with so much memory each fit one accelerator.
func perAccelerator(device, each disdel.Bytes) int {
	if each <= 0 || each > device {
		return 0
	}
	return int(device / each)
}

// DeviceShare is the memory that an action counts as on an accelerator: the whole divided by the number of equal
// actions that fit. An action never spans two accelerators, so the remainder of one is useless to equal actions.
// Actions of different sizes may still leave pieces that nothing fits; then the platform lets the last of them wait.
func DeviceShare(device, each disdel.Bytes) disdel.Bytes {
	if n := perAccelerator(device, each); n > 0 {
		return device / disdel.Bytes(n)
	}
	return each
}

// accelerators is the number of accelerators for the job's train actions.
func (b *planBuilder) accelerators() int {
	n := b.Platform.Accelerators()
	if maximum := b.Job.Resources.GPU.Count; maximum > 0 {
		n = min(n, maximum)
	}
	return n
}

// device is the memory of an accelerator that an action gets: by its estimate, in whole megabytes, or, of a train
// action, as the job file says. It returns OverLimit, with what would pass, where that is too little or too much.
func (b *planBuilder) device(task disdel.Task, e disdel.Estimate) (disdel.Bytes, error) {
	if e.Device == 0 {
		return 0, nil
	}
	has, own := b.Platform.MaxDevice, b.Job.Resources.GPU.Memory
	each := disdel.Bytes(e.Device.MB()) * disdel.MB
	minimum, id := b.learned(task, deviceLimit())
	if minimum := min(disdel.Bytes(minimum), has); minimum > each && own == 0 {
		each = minimum
		b.because("%s memory of an accelerator: at least %v, since less was too little for %s", task, each, id)
	}
	shared := task == disdel.TaskTrain && own > 0
	switch {
	case has == 0:
		return 0, b.tooMuch("--set resources.device=cpu; of another platform, --gpus and --gpu-memory say what there is",
			"a %s action needs %v of an accelerator's memory, and the platform has none", task, each)
	case shared && e.Device > own:
		return 0, b.tooMuch(b.deviceHint(own, each), "a %s action needs %v of an accelerator's memory, and "+
			"resources.gpu.memory is %v", task, e.Device.Beside(own), own.Beside(e.Device))
	case shared && own > has:
		return 0, b.tooMuch(fmt.Sprintf("--set resources.gpu.memory=%dMB, or leave it out", has/disdel.MB),
			"resources.gpu.memory is %v, and the platform's has %v", own.Beside(has), has.Beside(own))
	case shared:
		each = own
	case each > has:
		return 0, b.tooMuch(b.deviceHint(has, 0), "a %s action needs %v of an accelerator's memory, and the platform's "+
			"has %v", task, each.Beside(has), has.Beside(each))
	}
	b.because("%s memory of an accelerator: %v of %v, %d fit one", task, each, has, perAccelerator(has, each))
	return each, nil
}

// limits are the limits of an action, before its timeout is known.
func (b *planBuilder) limits(memory, device disdel.Bytes) disdel.Limits {
	l := disdel.Limits{Memory: memory, Device: device}
	if device > 0 {
		l.Devices = b.Job.Resources.GPU.Count
	}
	return l
}

func (b *planBuilder) tooMuch(hint, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.OverLimit, Code: disdel.CodeDeviceMemory, Op: "plan job", Job: b.ID, Msg: fmt.Sprintf(format, args...),
		Hint: hint,
	}
}

// deviceHint names the share of an accelerator that lets the job pass, if the platform has that much, and the batch
// that fits most.
func (b *planBuilder) deviceHint(maximum, share disdel.Bytes) string {
	batch := "a smaller network: not even one row a batch fits"
	if n := b.deviceBatch(maximum); n > 0 {
		batch = fmt.Sprintf("--set %s=%d", b.Job.Training.BatchField(), n)
	}
	if share > 0 && share <= b.Platform.MaxDevice {
		return fmt.Sprintf("--set resources.gpu.memory=%dMB, or %s", share.MB(), batch)
	}
	return batch
}

// deviceBatch is the largest batch below the job's with which a train action needs at most so much accelerator
// memory; 0: none.
func (b *planBuilder) deviceBatch(maximum disdel.Bytes) int {
	return sort.Search(b.Job.Training.JobBatch(), func(i int) bool {
		smaller := planBuilder{PlanInput: b.PlanInput, side: b.side}
		smaller.Job.Training = b.Job.Training.Resized(i + 1)
		e := smaller.estimate(max(1, b.plan.Workers))
		return disdel.Bytes(e.Device.MB())*disdel.MB > maximum
	})
}

// devicesAtOnce bounds the train actions that run at once by the accelerators.
func (b *planBuilder) devicesAtOnce(each disdel.Bytes) {
	if each == 0 {
		return
	}
	one, count := perAccelerator(b.Platform.MaxDevice, each), b.accelerators()
	if n := one * count; n < b.plan.Parallel {
		b.plan.Parallel = n
		b.because("at most %d train actions at once: %v each of %d x %v of accelerators, %d on each", n, each, count,
			b.Platform.MaxDevice, one)
	}
}

// deviceMemory gives a larger share to an activation that ran out of accelerator memory; at the ceiling it divides
// the work. The plan was enough, so a larger context or another action took the rest.
func (d *remedyFinder) deviceMemory() Remedy {
	limit, device := d.a.Limits.Device, d.Plan.Platform.MaxDevice
	next, why := DeviceMemory(d.a, d.retries.MemoryFactor)
	if own := d.Job.Resources.GPU.Memory; d.a.Task == disdel.TaskTrain && own > 0 && limit >= own {
		device = own
	}
	if limit > 0 && limit < device {
		if next > device {
			next, why = device, fmt.Sprintf("%s, and there are %v", why, device)
		}
		r := Remedy{Limits: d.a.Limits}
		r.Limits.Device = next
		return d.adjusted(r, disdel.FieldDevice, disdel.Quantity{Memory: limit}, disdel.Quantity{Memory: next}, why)
	}
	at := "an accelerator's memory is too little"
	if limit > 0 {
		at = fmt.Sprintf("the share of an accelerator's memory is at its most, %v", cmp.Or(device, limit))
	}
	if r, ok := d.halfBatch(at); ok {
		return r
	}
	return d.refuse("%s, and the work cannot be divided further", at)
}

// DeviceMemory is the accelerator memory for another try of an activation that ran out of it, in whole megabytes, and
// the arithmetic.
func DeviceMemory(a disdel.Activation, factor float64) (disdel.Bytes, string) {
	if factor <= 1 {
		factor = MemoryFactor
	}
	limit := a.Limits.Device
	next, why := max(limit+1, scaled(limit, factor)), fmt.Sprintf("%v x %.4g", limit, factor)
	return disdel.Bytes(next.MB()) * disdel.MB, why
}
