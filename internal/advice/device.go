package advice

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// moreDevice raises the share of a GPU's memory; at the ceiling it lowers what the action needs instead.
func (w *worker) moreDevice() Advice {
	limit, most := w.a.Limits.Device, w.record.Plan.Platform.MaxDevice
	if limit == 0 || most == 0 {
		return w.smallerOnDevice("the record does not say how much of a GPU there was")
	}
	need, why := scheduler.DeviceMemory(*w.a, lastDeviceFactor)
	sum := fmt.Sprintf("%v of a GPU were too little for the %s action, and %d MB should do: %s", limit, w.a.Task,
		need.MB(), why)
	switch {
	case limit >= most:
		return w.smallerOnDevice(fmt.Sprintf("it had all of a GPU, %v", most))
	case w.a.Task != disdel.TaskTrain:
		return submitUnchanged("%s; the next job of this kind gets more, since the history now knows", sum)
	default:
		return with(sum, set("resources.gpu.memory", megabytes(min(need, most/disdel.MB*disdel.MB))))
	}
}

// lastDeviceFactor is the least growth of a share that nothing comes after, as that of other memory.
const lastDeviceFactor = 1.5

// smallerOnDevice halves the batch: of an action on a GPU most of what is there goes with it.
func (w *worker) smallerOnDevice(why string) Advice {
	if batch := w.batch(); batch > 1 {
		return with(why+"; half of the batch needs less", w.setBatch(batch/2))
	}
	return none("%s; no smaller batch is left: it takes a smaller network or a larger GPU", why)
}
