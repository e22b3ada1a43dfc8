package simulate

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// result sums up a trace that has come to its end.
func (r *run) result() Result {
	out := r.out
	var waits, runs []disdel.Millis
	for _, j := range r.jobs {
		o := j.Outcome
		out.Jobs = append(out.Jobs, o)
		out.CostGBs += o.CostGBs
		switch {
		case o.Refused != nil:
			out.Refused++
			continue
		case !j.over:
			out.Stuck = append(out.Stuck, o.ID)
			continue
		case o.Status == disdel.StatusSucceeded:
			out.Succeeded++
		default:
			out.Failed++
		}
		out.Makespan = max(out.Makespan, o.Ended)
		waits, runs = append(waits, o.Started-o.Arrived), append(runs, o.Ended-o.Started)
	}
	out.Wait, out.Run, out.Cloud = spread(waits), spread(runs), r.cloud.Totals
	if n := out.Cloud.Calls; n > 0 {
		out.ColdShare = float64(out.Cloud.Cold) / float64(n)
	}
	if whole := disdel.GBSeconds(r.cloud.Limits().Pool, out.Makespan); whole > 0 {
		out.UsedShare = out.Cloud.BusyGBs / whole
	}
	return out
}

func spread(list []disdel.Millis) Spread {
	if len(list) == 0 {
		return Spread{}
	}
	slices.Sort(list)
	var sum disdel.Millis
	for _, d := range list {
		sum += d
	}
	at := func(share float64) disdel.Millis { return list[int(math.Ceil(share*float64(len(list))))-1] }
	return Spread{
		Mean: sum / disdel.Millis(len(list)), Median: at(0.5), P95: at(0.95), Most: list[len(list)-1],
	}
}
