package aggregator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Capacity is the memory of one server.
type Capacity struct {
	Server string       // address
	Known  bool         // false if the user may not call INFO
	Used   disdel.Bytes // now
	Limit  disdel.Bytes // maxmemory, or else the machine's memory; 0: unknown
	Policy string       // maxmemory-policy
}

// Evicts tells whether a full server drops values.
func (c Capacity) Evicts() bool { return c.Policy != "" && c.Policy != "noeviction" }

// Free is what can still be written, never below 0.
func (c Capacity) Free() disdel.Bytes { return max(0, c.Limit-c.Used) }

// Capacity asks every server for its memory. A server that does not tell is not an error.
func (s *Store) Capacity(ctx context.Context) ([]Capacity, error) {
	out := make([]Capacity, len(s.servers))
	for i, server := range s.servers {
		var err error
		if out[i], err = server.capacity(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// isNetworkError tells whether a server could not be reached, rather than refused.
func isNetworkError(err error) bool {
	text := err.Error()
	return !strings.HasPrefix(text, "NOPERM") && !strings.HasPrefix(text, "ERR") && !strings.HasPrefix(text, "section")
}

// read parses INFO's text.
func (c *Capacity) read(text string) {
	fields := infoFields(text)
	used, err := strconv.ParseInt(fields["used_memory"], 10, 64)
	limit, err2 := strconv.ParseInt(fields["maxmemory"], 10, 64)
	if err != nil || err2 != nil {
		return
	}
	if limit == 0 {
		limit, _ = strconv.ParseInt(fields["total_system_memory"], 10, 64)
	}
	*c = Capacity{
		Server: c.Server, Known: true, Used: disdel.Bytes(used), Limit: disdel.Bytes(limit),
		Policy: fields["maxmemory_policy"],
	}
}

// Need is what a job keeps in the store.
type Need struct {
	Workers   int
	Update    disdel.Bytes // of a worker, encoded: WireBytes
	Reference disdel.Bytes // weights as float32; an aggregation's output has the same size
	Outputs   int          // aggregation actions below the top, of all levels
	State     disdel.Bytes // of a worker: moments, statistics, residual; 0: none
	Deltas    int          // deltas that a round's workers send in all steps; 0: none
	Delta     disdel.Bytes // the largest one
	Last      disdel.Bytes // what each worker sends besides at the end of a round
	Passed    disdel.Bytes // most values of a step that all stages have sent and still need; 0: no stages
}

// A round's values are dropped after the next reference is published. At that moment there are one round of updates,
// two references, and two states of every worker. The allocator takes up to 5 % more (make bench-aggregator:
// store_overhead), the protocol's buffers the rest of 10 %.
const (
	referencesHeld = 2
	statesHeld     = 2
	storeOverhead  = 1.1
	deltaKeys      = 1 * disdel.KB   // a delta's keys, its line in the log, and its entries in the index and the table
	perProcess     = 256 * disdel.KB // what Redis counts for the connections of one process
)

// processes is how many processes use the store at once: workers, an aggregation, the controller.
func (n Need) processes() int { return n.Workers + 2 }

// Bytes is the most memory that the job needs at once, on all servers together.
func (n Need) Bytes() disdel.Bytes {
	round := max(disdel.Bytes(n.Workers)*n.Update, n.Passed) + disdel.Bytes(n.Outputs)*n.Reference
	if n.Deltas > 0 {
		round += disdel.Bytes(n.Deltas)*(n.Delta+deltaKeys) + disdel.Bytes(n.Workers)*(n.Last+deltaKeys)
	}
	all := round + referencesHeld*n.Reference + statesHeld*disdel.Bytes(n.Workers)*n.State
	return disdel.Bytes(storeOverhead*float64(all)) + disdel.Bytes(n.processes())*perProcess
}

// String explains the sum.
func (n Need) String() string {
	parts := []string{fmt.Sprintf("%d updates of %v", n.Workers, n.Update)}
	if n.Passed > disdel.Bytes(n.Workers)*n.Update { // stages send updates after the last step
		parts[0] = fmt.Sprintf("%v that stages pass in a step", n.Passed)
	}
	if n.Deltas > 0 {
		parts = append(parts, fmt.Sprintf("%d deltas of a round's steps of up to %v, %d at its end of up to %v, and %v of "+
			"keys for each", n.Deltas, n.Delta, n.Workers, n.Last, deltaKeys))
	}
	if n.Outputs > 0 {
		parts = append(parts, fmt.Sprintf("%d averages of %v", n.Outputs, n.Reference))
	}
	parts = append(parts, fmt.Sprintf("%d references of %v", referencesHeld, n.Reference))
	if n.State > 0 {
		parts = append(parts, fmt.Sprintf("%d states of each worker of %v", statesHeld, n.State))
	}
	return fmt.Sprintf("%s, a tenth more, and %v for the connections of each of %d processes: %v",
		strings.Join(parts, ", "), perProcess, n.processes(), n.Bytes())
}

// hint tells how a job can keep less in the store.
func (n Need) hint() string {
	if n.Deltas > 0 {
		return "make rounds shorter (distribution.sync.every), send int8 (distribution.exchange.values)"
	}
	if n.Passed > 0 {
		return "lower training.batchSize, or use fewer stages (distribution.stages)"
	}
	return "send updates as int8 (distribution.aggregation.wire)"
}

// Fits returns OverLimit with an explanation if a server is too small. Values are spread evenly over the servers. A
// server that does not tell its memory passes.
func (n Need) Fits(servers []Capacity) error {
	share := n.Bytes() / disdel.Bytes(max(1, len(servers)))
	for _, c := range servers {
		if !c.Known || c.Limit == 0 || share <= c.Free() {
			continue
		}
		suffix := ""
		if len(servers) > 1 {
			suffix = fmt.Sprintf(", %v on each of %d servers", share, len(servers))
		}
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "check store",
			Msg:  fmt.Sprintf("%s%s; Redis at %s has %v free of %v", n, suffix, c.Server, c.Free(), c.Limit),
			Hint: fmt.Sprintf("give Redis %v more (maxmemory), add servers, %s, or use fewer workers", share-c.Free(), n.hint()),
		}
	}
	return nil
}
