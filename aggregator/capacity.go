package aggregator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Capacity is what one server has room for.
type Capacity struct {
	Server string       // address
	Known  bool         // whether the server says; a user without INFO is not told
	Used   disdel.Bytes // now
	Limit  disdel.Bytes // maxmemory, or the machine's memory where that is not set; 0: unknown
	Policy string       // maxmemory-policy
}

// Evicts says whether the server drops values of its choice when it is full.
func (c Capacity) Evicts() bool { return c.Policy != "" && c.Policy != "noeviction" }

// Free is what may still be written, never below 0.
func (c Capacity) Free() disdel.Bytes { return max(0, c.Limit-c.Used) }

// Capacity asks every server. One that does not tell is not an error.
func (s *Store) Capacity(ctx context.Context) ([]Capacity, error) {
	out := make([]Capacity, len(s.servers))
	for i, server := range s.servers {
		out[i].Server = server.Options().Addr
		text, err := server.Info(ctx, "memory").Result()
		switch {
		case err == nil:
			out[i].read(text)
		case ctx.Err() != nil || wrapsNetwork(err):
			return nil, wrap(err, "read capacity", "Redis at "+out[i].Server)
		}
	}
	return out, nil
}

// wrapsNetwork says whether a server could not be asked, rather than refused.
func wrapsNetwork(err error) bool {
	text := err.Error()
	return !strings.HasPrefix(text, "NOPERM") && !strings.HasPrefix(text, "ERR") && !strings.HasPrefix(text, "section")
}

// read takes what is needed out of INFO's text.
func (c *Capacity) read(text string) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
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
	Update    disdel.Bytes // of a worker, on the wire: WireBytes
	Reference disdel.Bytes // the weights as float32; an aggregation's output has their size
	Outputs   int          // aggregation actions below the top one, all levels together
	State     disdel.Bytes // of a worker: moments, statistics, residual; 0: none is kept
	Deltas    int          // that a round's workers send, all steps together; 0: they exchange nothing inside a round
	Delta     disdel.Bytes // the most that one has
	Last      disdel.Bytes // and what each worker sends besides when the round ends: all that it still owes
}

// A round's values are dropped once the next reference stands: at that moment one round of updates, two references and
// two states of every worker are there. The allocator takes up to a twentieth more (make bench-aggregator:
// store_overhead), the protocol's buffers the rest of a tenth.
const (
	referencesHeld = 2
	statesHeld     = 2
	storeOverhead  = 1.1
	deltaKeys      = 1 * disdel.KB   // a delta's keys, its line in the log, and its entries in the index and the table
	perProcess     = 256 * disdel.KB // what Redis counts for the connections of one process
)

// processes are those that talk to the store at once: workers, an aggregation, the controller.
func (n Need) processes() int { return n.Workers + 2 }

// Bytes is the most that the job holds at once, all servers together.
func (n Need) Bytes() disdel.Bytes {
	round := disdel.Bytes(n.Workers)*n.Update + disdel.Bytes(n.Outputs)*n.Reference
	if n.Deltas > 0 {
		round += disdel.Bytes(n.Deltas)*(n.Delta+deltaKeys) + disdel.Bytes(n.Workers)*(n.Last+deltaKeys)
	}
	all := round + referencesHeld*n.Reference + statesHeld*disdel.Bytes(n.Workers)*n.State
	return disdel.Bytes(storeOverhead*float64(all)) + disdel.Bytes(n.processes())*perProcess
}

// String is the arithmetic.
func (n Need) String() string {
	parts := []string{fmt.Sprintf("%d updates of %v", n.Workers, n.Update)}
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

// less says how a job keeps less in the store.
func (n Need) less() string {
	if n.Deltas > 0 {
		return "make rounds shorter (distribution.sync.every), send int8 (distribution.exchange.values)"
	}
	return "send updates as int8 (distribution.aggregation.wire)"
}

// Fits returns OverLimit with the arithmetic if one of the servers, over which values are spread evenly, is too small.
// A server that does not say what it has is taken to have enough.
func (n Need) Fits(servers []Capacity) error {
	share := n.Bytes() / disdel.Bytes(max(1, len(servers)))
	for _, c := range servers {
		if !c.Known || c.Limit == 0 || share <= c.Free() {
			continue
		}
		of := ""
		if len(servers) > 1 {
			of = fmt.Sprintf(", %v on each of %d servers", share, len(servers))
		}
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "check store",
			Msg:  fmt.Sprintf("%s%s; Redis at %s has %v free of %v", n, of, c.Server, c.Free(), c.Limit),
			Hint: fmt.Sprintf("give Redis %v more (maxmemory), add servers, %s, or use fewer workers", share-c.Free(), n.less()),
		}
	}
	return nil
}
