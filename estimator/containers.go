package estimator

import (
	"fmt"

	"github.com/disdel/disdel"
)

// ContainerRule is DiSDeL's rule (III-B.1): start with two containers; while the estimate m_e of each is above limit M,
// add ceil((m_e - M) / M) and estimate again with the smaller shards. Only the shard shrinks: a model that alone
// exceeds M never fits, and more than most containers would leave shards without a batch; both are OverLimit with the
// arithmetic. steps tells the way.
func ContainerRule(limit disdel.Bytes, most int, estimate func(containers int) disdel.Estimate) (containers int,
	e disdel.Estimate, steps []string, err error,
) {
	return containerRule(limit, most, estimate, func(e disdel.Estimate) bool { return e.Total-e.Shard > limit })
}

// SharedContainerRule is ContainerRule for containers that share a batch, which shrinks with the shard: what exceeds M
// without any data may still fit with more of them, up to most.
func SharedContainerRule(limit disdel.Bytes, most int, estimate func(containers int) disdel.Estimate) (containers int,
	e disdel.Estimate, steps []string, err error,
) {
	return containerRule(limit, most, estimate, func(e disdel.Estimate) bool {
		return e.Total-e.Shard > limit && estimate(most).Total > limit
	})
}

// containerRule is both; hopeless tells whether what an estimate is above the limit by never shrinks.
func containerRule(limit disdel.Bytes, most int, estimate func(containers int) disdel.Estimate,
	hopeless func(disdel.Estimate) bool,
) (containers int, e disdel.Estimate, steps []string, err error) {
	containers = min(2, most)
	for {
		e = estimate(containers)
		if e.Total <= limit {
			return containers, e, append(steps,
				fmt.Sprintf("workers: %d need %v each, and %v are allowed", containers, e.Total, limit)), nil
		}
		if containers >= most || hopeless(e) {
			return 0, e, steps, overLimit(limit, most, e)
		}
		more := int((e.Total - limit + limit - 1) / limit)
		steps = append(steps, fmt.Sprintf("workers: %d would need %v each, above %v: add %d", containers, e.Total, limit,
			more))
		containers = min(containers+more, most)
	}
}

func overLimit(limit disdel.Bytes, most int, e disdel.Estimate) error {
	fixed := e.Total - e.Shard
	out := &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job",
		Hint: "lower training.batchSize, choose a smaller network, or raise the memory limit",
	}
	if fixed > limit {
		out.Msg = fmt.Sprintf("a train action needs %v without any data (fit %v, package %v, model %v, margin %v), and the "+
			"limit is %v: no number of workers makes it fit",
			fixed, e.Training, e.Package, e.Model, e.Margin, limit)
		return out
	}
	out.Msg = fmt.Sprintf("a train action needs %v even with %d workers, the most that leave each a whole batch, and "+
		"the limit is %v", e.Total, most, limit)
	return out
}
