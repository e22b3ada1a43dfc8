package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	goflag "flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/golden"
)

var updateFiles = goflag.Bool("update", false, "write the transcripts of testdata anew")

func oneOf[T any](draw *rand.Rand, values ...T) T { return values[draw.IntN(len(values))] }

// drawnLayout is of tensors of few values, some of which are empty, in short columns.
func drawnLayout(draw *rand.Rand) layout {
	var w disdel.Weights
	for i := range draw.IntN(6) {
		w = append(w, disdel.Tensor{Name: fmt.Sprint("t", i), Shape: []int{draw.IntN(4), 1 + draw.IntN(3)}})
	}
	return newLayout(w, 1+draw.IntN(7))
}

// A layout cuts all values in a row into columns. The test counts value by value.
func TestALayoutCutsAllValuesInARow(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		l := drawnLayout(draw)
		var columns [][]tensorPart
		n := 0
		for i, tensor := range l.tensors {
			for at := range tensor.Shape[0] * tensor.Shape[1] {
				if n%l.column == 0 {
					columns = append(columns, nil)
				}
				if name := l.valueName(n); name != fmt.Sprintf("value %d of %s", at, tensor.Name) {
					t.Errorf("%+v: value %d is %s", l, n, name)
				}
				n++
				last := &columns[len(columns)-1]
				if k := len(*last); k > 0 && (*last)[k-1].tensor == i {
					(*last)[k-1].to++
					continue
				}
				*last = append(*last, tensorPart{i, at, at + 1})
			}
		}
		if l.values() != n || l.columns() != max(1, len(columns)) {
			t.Errorf("%+v has %d values in %d columns", l, l.values(), l.columns())
		}
		for k, want := range columns {
			if got := slices.Collect(l.pieces(k)); !slices.Equal(got, want) {
				t.Errorf("%+v: column %d is %v, want %v", l, k, got, want)
			}
		}
		for shards := 1; shards <= l.columns(); shards++ { // every column is in one shard, and no shard is empty
			next := 0
			for i := range shards {
				s := Shard{i, shards}
				from, to := s.columns(l)
				if err := s.check(l); err != nil || from != next || to <= from || to-from > l.columns()/shards+1 {
					t.Errorf("%+v: %+v is from %d to %d, %v", l, s, from, to, err)
				}
				next = to
			}
			if next != l.columns() {
				t.Errorf("%+v: %d shards have %d columns", l, shards, next)
			}
		}
	}
}

// Shards that have no column are refused by name.
func TestAShardWithoutColumnsIsRefused(t *testing.T) {
	l := newLayout(disdel.Weights{{Name: "w", Shape: []int{7}}}, 3)
	for s, want := range map[Shard]string{
		{}: "", {0, 1}: "", {0, 3}: "", {2, 3}: "",
		{-1, 3}: "there is no shard -1 of 3", {3, 3}: "there is no shard 3 of 3", {0, -1}: "there is no shard 0 of -1",
		{1, 0}: "there is no shard 1 of 0",
		{0, 4}: "the model has 3 columns of 3 values, too few for 4 shards",
	} {
		got := ""
		if err := s.check(l); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// Of 60 drawn jobs each needs the memory that it needed in earlier versions, with the same explanation. A server with so
// much free memory fits, and one with a byte less does not.
func TestDrawnNeedsKeepTheirExplanations(t *testing.T) {
	draw := rand.New(rand.NewPCG(2, 1))
	size := func() disdel.Bytes { return disdel.MB * oneOf[disdel.Bytes](draw, 0, 1, 7, 300) }
	var lines []string
	for n := range 60 {
		need := Need{Workers: 1 + draw.IntN(9), Update: size(), Reference: size(), Outputs: draw.IntN(3), State: size()}
		if draw.IntN(3) == 0 {
			need.Deltas, need.Delta, need.Last = 1+draw.IntN(50), size(), size()
		}
		if draw.IntN(3) == 0 {
			need.Passed = oneOf(draw, disdel.Bytes(need.Workers)*need.Update, size(), 5000*disdel.MB)
		}
		servers := 1 + draw.IntN(3)
		share := need.Bytes() / disdel.Bytes(servers)
		all := make([]Capacity, servers)
		for i := range all {
			all[i] = Capacity{Server: fmt.Sprint("r:", i), Known: true, Used: disdel.MB, Limit: share + disdel.MB}
		}
		if err := need.Fits(all); err != nil {
			t.Errorf("%+v: exactly as much as it needs: %v", need, err)
		}
		all[draw.IntN(servers)].Limit -= disdel.Bytes(1 + draw.IntN(2)*int(share))
		err := need.Fits(all)
		if !errors.Is(err, disdel.OverLimit) {
			t.Fatalf("%+v: less than it needs: %v", need, err)
		}
		lines = append(lines, fmt.Sprintf("%d: %d bytes; %v; %s", n, need.Bytes(), err, disdel.AsError(err).Hint))
	}
	const file = "testdata/drawn/needs.txt"
	got := strings.Join(lines, "\n") + "\n"
	golden.Same(t, file, got, *updateFiles)
}

// What Redis says of its memory is known only with both numbers. Without a limit the machine's memory is one.
func TestMemoryIsReadFromInfo(t *testing.T) {
	for text, want := range map[string]Capacity{
		"used_memory:5\r\nmaxmemory:9\r\nmaxmemory_policy:noeviction\r\n": {Known: true, Used: 5, Limit: 9, Policy: "noeviction"},
		"used_memory:5\nmaxmemory:0\ntotal_system_memory:70\n":            {Known: true, Used: 5, Limit: 70},
		"used_memory:5\nmaxmemory:0\n":                                    {Known: true, Used: 5},
		"used_memory:5\n":                                                 {},
		"maxmemory:9\n":                                                   {},
	} {
		var got Capacity
		if got.read(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	for policy, evicts := range map[string]bool{"": false, "noeviction": false, "allkeys-lru": true} {
		if (Capacity{Policy: policy}).Evicts() != evicts {
			t.Errorf("policy %q", policy)
		}
	}
	if n := (Capacity{Used: 9, Limit: 5}).Free(); n != 0 {
		t.Errorf("%d bytes are free of a full server", n)
	}
}

// A reply has its fields as a map, or as a list of names and values. A list may end in a name.
func TestAReplysFieldsAreFound(t *testing.T) {
	for _, reply := range []any{
		map[any]any{"mode": "cluster", "role": "replica", "none": nil},
		[]any{"mode", "cluster", "role", "replica"},
		[]any{"mode", "cluster", "role", "replica", "none"},
	} {
		if m, r, none := field(reply, "mode"), field(reply, "role"), field(reply, "none"); m != "cluster" || r != "replica" ||
			none != "" || field(reply, "cluster") != "" {
			t.Errorf("%v: mode %q, role %q, none %q", reply, m, r, none)
		}
	}
	if text := field("OK", "mode"); text != "" {
		t.Errorf("a text has the mode %q", text)
	}
}

// The id before one of a stream is the largest below it.
func TestTheIDBeforeOneIsTheLargestBelowIt(t *testing.T) {
	for id, want := range map[string]string{
		"5-3": "5-2", "5-1": "5-0", "5-0": fmt.Sprintf("4-%d", uint64(math.MaxUint64)), "0-1": "0-0", "0-0": "0", "5": "0",
		"x-1": "0", "1-x": "0",
	} {
		if got := before(id); got != want {
			t.Errorf("before %s is %s, want %s", id, got, want)
		}
	}
}

// A log and news that take several reads are read to their end.
func TestALogOfSeveralReadsIsReadToItsEnd(t *testing.T) {
	s := enter(t, embedded(t), "long")
	for stream, read := range map[string]func(*Deltas) error{
		s.keys.log("job-1", 2):  func(d *Deltas) error { return d.ReadLog(ctx) },
		s.keys.news("job-1", 2): func(d *Deltas) error { return d.ReadNews(ctx) },
	} {
		const entries = 2*logCount + 1
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range entries {
				p.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{"step", i + 1, "member", 1, "entry", noDelta}})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		d := s.Deltas("job-1", 2, 2)
		if err := read(d); err != nil || d.Newest(1) != entries || d.Newest(0) != 0 {
			t.Errorf("%s: read up to step %d of %d, %v", stream, d.Newest(1), entries, err)
		}
	}
}

// Entries of the news that are of no member or of no step are skipped, and say nothing of others.
func TestForeignNewsAreSkipped(t *testing.T) {
	d := (&Store{}).Deltas("job-1", 2, 2)
	for _, e := range [][2]string{{"0", "1"}, {"-1", "1"}, {"1", "-1"}, {"1", "2"}, {"x", "1"}, {"1", "x"}} {
		d.noteEntry(redis.XMessage{ID: "1-1", Values: map[string]any{"step": e[0], "member": e[1], "last": "1"}})
	}
	if len(d.sent) != 0 || slices.Max(d.newest) != 0 || slices.Max(d.ended) != 0 {
		t.Errorf("%+v", d)
	}
	if d.noteEntry(redis.XMessage{ID: "1-2", Values: map[string]any{"step": "1", "member": "0"}}); d.Newest(0) != 1 ||
		d.LogID() != "1-1" {
		t.Errorf("step %d, log %s", d.Newest(0), d.LogID())
	}
}

// A small delta travels in the news, up to a bound, and a larger one does not.
func TestTheBoundOfDeltasInTheNewsIsKept(t *testing.T) {
	s := enter(t, embedded(t), "bound")
	c := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	for step, size := range []int{maxInNews, maxInNews + 1} {
		commitDelta(t, s, c, step+1, strings.Repeat("x", size))
		d := s.Deltas("job-1", c.ID.Round, 1)
		if err := d.Wait(ctx, step+1, never); err != nil {
			t.Fatal(err)
		}
		got, err := d.Fetch(ctx, step+1)
		if err != nil || len(got[0]) != size || d.sent[step+1][0].held != (size <= maxInNews) {
			t.Errorf("%d bytes: read %d, in the news %t, %v", size, len(got[0]), d.sent[step+1][0].held, err)
		}
	}
}

// readsOf counts reads of values into buffers.
type readsOf struct{ reads atomic.Int64 }

func (r *readsOf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *readsOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *readsOf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "get" {
			r.reads.Add(1)
		}
		return next(ctx, cmd)
	}
}

// The head of a network with many long names is read at once: its buffer has room for them.
func TestAHeadOfManyNamesIsReadAtOnce(t *testing.T) {
	s := enter(t, embedded(t), "names")
	var w disdel.Weights
	for i := range 300 {
		w = append(w, disdel.Tensor{Name: strings.Repeat("n", 200) + fmt.Sprint(i), Shape: []int{1, 1, 1, 1}, Data: []float32{1}})
	}
	ids := []disdel.UpdateID{update(0, 1).ID, update(1, 1).ID, update(2, 1).ID}
	for _, id := range ids {
		push(t, s, disdel.Update{ID: id, Samples: 1, Weights: w})
	}
	count := &readsOf{}
	s.client.large.AddHook(count)
	if _, err := s.Store.Reduce(ctx, Claim{ID: disdel.UpdateID{Job: "job-1", Round: 2, Level: 1}},
		Reduction{Members: ids, Like: w}); err != nil || count.reads.Load() != int64(len(ids)) {
		t.Errorf("%d reads of %d heads, %v", count.reads.Load(), len(ids), err)
	}
}

// An update that was delivered says so: a train action's own result, and the weight of a mean.
func TestWhatWasDeliveredIsReturned(t *testing.T) {
	s := enter(t, embedded(t), "delivered")
	for member, result := range []string{`{"loss":1}`, "", "{"} {
		u := update(member, 7)
		u.Meta = map[string]string{ResultKey: result}
		push(t, s, u)
		if got, there, err := s.Delivered(ctx, u.ID); string(got) != result || there != (member == 0) || err != nil {
			t.Errorf("the result %q: %s, %t, %v", result, got, there, err)
		}
	}
	mean := update(3, 7)
	mean.ID.Level = 2
	push(t, s, mean)
	var result disdel.AggregateResult
	text, there, err := s.Delivered(ctx, mean.ID)
	if err := errors.Join(err, json.Unmarshal(text, &result)); err != nil || !there || result.Weight != 7 ||
		!result.Duplicate {
		t.Errorf("a mean: %s, %t, %v", text, there, err)
	}
	missing := update(9, 1).ID
	if got, there, err := s.Delivered(ctx, missing); got != nil || there || err != nil {
		t.Errorf("nothing was delivered: %s, %t, %v", got, there, err)
	}
	s.client.Set(ctx, s.keys.value(kindUpdate, missing), "damage", 0)
	_, there, err = s.Delivered(ctx, missing)
	if want(t, disdel.Corrupt, err); there {
		t.Error("a damaged update was delivered")
	}
}

// A difference and its reference may be finite while their sum is not: the update is Diverged, and names the value.
func TestADifferenceThatOverflowsIsDiverged(t *testing.T) {
	s := enter(t, embedded(t), "overflow")
	reference, w, zero := someWeights(1), someWeights(1), someWeights(1)
	reference[1].Data[2], w[1].Data[2], zero[1].Data[2] = 3.2e38, 4e37, 0
	if err := s.PutReference(ctx, "job-1", 2, reference); err != nil {
		t.Fatal(err)
	}
	pushAs(t, s, disdel.Update{ID: update(0, 1).ID, Samples: 1, Weights: w}, disdel.WireBfloat16, zero)
	_, err := s.FetchUpdate(ctx, update(0, 1).ID, w)
	if want(t, disdel.Diverged, err); !strings.Contains(fmt.Sprint(err), "value 2 of a.bias") {
		t.Errorf("%v does not name the value", err)
	}
}

// A value that was made under one fence is not committed under another, and nothing of it is left.
func TestAValueOfAnotherFenceIsNotCommitted(t *testing.T) {
	s := enter(t, embedded(t), "fences")
	s.column = 4
	h, err := s.headOf(kindUpdate, update(0, 1).ID, someWeights(1))
	if err != nil {
		t.Fatal(err)
	}
	h.fence = 1
	staged, err := s.stage(ctx, h, fromWeights(h, someWeights(1)))
	if err != nil {
		t.Fatal(err)
	}
	want(t, disdel.Conflict, s.commit(ctx, staged, h.id, 2))
	for key := range s.all() {
		if strings.HasPrefix(key, staged.key) {
			t.Errorf("%s is left", key)
		}
	}
}

// Any part of a reference is that part of its values, also where it begins or ends outside of them.
func TestAPartOfAReferenceIsItsValues(t *testing.T) {
	s := enter(t, embedded(t), "part")
	w := someWeights(1)
	all := slices.Concat(w[0].Data, w[1].Data)
	for _, column := range []int{4, 15, 100} {
		s.column = column
		job := disdel.JobID(fmt.Sprint("job-", column))
		if err := s.PutReference(ctx, job, 0, w); err != nil {
			t.Fatal(err)
		}
		for from := -1; from <= len(all)-1; from++ {
			for _, to := range []int{-1, from, from + 1, from + 4, len(all) - 1, len(all), len(all) + 3} {
				var got []float32
				err := s.StreamReferencePart(ctx, job, 0, w, from, to, func(block []float32) error {
					got = append(got, block...)
					return nil
				})
				want := all[max(0, from):max(0, from, min(to, len(all)))]
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("columns of %d, from %d to %d: %v, %v, want %v", column, from, to, got, err, want)
				}
			}
		}
	}
}

// failing lets all commands of some names fail, alone or in a pipeline.
type failing struct{ names string }

func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(f.names, cmd.Name()) {
			cmd.SetErr(errNoAnswer)
			return errNoAnswer
		}
		return next(ctx, cmd)
	}
}

func (f failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		for _, cmd := range all {
			if strings.Contains(f.names, cmd.Name()) {
				cmd.SetErr(errNoAnswer)
				return errNoAnswer
			}
		}
		return next(ctx, all)
	}
}

// A stage that gets no answer to a command says so, whichever the command is.
func TestAStageTellsWhichAnswerItLacks(t *testing.T) {
	at := embedded(t)
	join := func(_, second *Pipeline) error { _, err := second.Join(ctx, Joined{}, never); return err }
	end := func(_, second *Pipeline) error { return second.End(ctx, never) }
	send := func(_, second *Pipeline) error { return second.Send(ctx, false, Values{1}) }
	receive := func(first, second *Pipeline) error { return second.Receive(ctx, true, make(Values, 1), never) }
	for call, c := range map[string]struct {
		names string
		do    func(first, second *Pipeline) error
	}{
		"join without the entry": {"hset", join}, "join without the others": {"hgetall", join},
		"check": {"hgetall", func(_, second *Pipeline) error { return second.Check(ctx) }},
		"end":   {"hset", end}, "end without the others": {"hgetall", end},
		"send without the index": {"sadd", send}, "send without the values": {"set", send},
		"send without the announcement":    {"xadd", send},
		"receive without the announcement": {"xread", receive}, "receive without the values": {"get", receive},
		"receive that deletes nothing": {"unlink", receive}, "receive nothing": {"hgetall", receive},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			s := enter(t, at, "lacks-"+strings.ReplaceAll(call, " ", "-"))
			first, second := twoStages(t, s)
			if call != "receive nothing" {
				if err := first.Send(ctx, true, Values{1}); err != nil {
					t.Fatal(err)
				}
			}
			s.client.retries = 0
			s.client.AddHook(failing{c.names})
			s.client.large.AddHook(failing{c.names})
			var ours *disdel.Error
			if err := c.do(first, second); !errors.Is(err, errNoAnswer) || !errors.As(err, &ours) {
				t.Error(err)
			}
		})
	}
}

// A stage that has to wait finds out that another one has started again.
func TestAStageThatWaitsFindsARestart(t *testing.T) {
	s := enter(t, embedded(t), "restart")
	first, second := twoStages(t, s)
	again := s.Pipeline(Claim{ID: update(1, 1).ID, Fence: 9}, second.at)
	if _, err := again.Join(ctx, Joined{}, never); err != nil {
		t.Fatal(err)
	}
	if err := first.Receive(ctx, false, make(Values, 1), still); !errors.Is(err, ErrStageRestarted) {
		t.Errorf("%v, want %v", err, ErrStageRestarted)
	}
}

// A member takes part in the steps up to its last one, and in all while it has not left.
func TestAMemberTakesPartUpToItsLastStep(t *testing.T) {
	d := (&Store{}).Deltas("job-1", 2, 2)
	d.ended[1] = 2
	for step, want := range map[int]bool{1: true, 2: true, 3: false} {
		if d.participates(1, step) != want || !d.participates(0, step) {
			t.Errorf("step %d: %t and %t", step, d.participates(1, step), d.participates(0, step))
		}
	}
}

// A claim that was lost is told, together with whether the job was canceled.
func TestALostClaimTellsOfACancel(t *testing.T) {
	s := enter(t, embedded(t), "lost")
	lost := claim(t, s, update(0, 1).ID, "a", 1, Claimed)
	claim(t, s, update(0, 1).ID, "b", 2, Claimed)
	for _, canceled := range []bool{false, true} {
		if canceled {
			if err := s.Cancel(ctx, "job-1"); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Renew(ctx, lost)
		if want(t, disdel.Conflict, err); got != canceled {
			t.Errorf("canceled %t, told %t", canceled, got)
		}
	}
}

// A stage that waits for a message calls idle meanwhile, and ends with idle's error.
func TestAStageThatWaitsCallsIdle(t *testing.T) {
	first, _ := twoStages(t, enter(t, embedded(t), "idle"))
	if err := first.Receive(ctx, false, make(Values, 1), never); err == nil || err.Error() != never().Error() {
		t.Errorf("%v, want idle's error", err)
	}
}

// messages counts the messages to a server, with one command or with several.
type messages struct{ sent atomic.Int64 }

func (m *messages) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *messages) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { m.sent.Add(1); return next(ctx, cmd) }
}

func (m *messages) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error { m.sent.Add(1); return next(ctx, all) }
}

// With one server a delta is one message, which also brings the deltas of the others.
func TestADeltaIsOneMessage(t *testing.T) {
	s := enter(t, embedded(t), "one")
	one, two := claim(t, s, update(0, 1).ID, "a", 1, Claimed), claim(t, s, update(1, 1).ID, "b", 1, Claimed)
	d := s.Deltas("job-1", one.ID.Round, 2)
	commitDelta(t, s, two, 1, "two") // the server knows the script from now on
	count := &messages{}
	s.client.AddHook(count)
	s.client.large.AddHook(count)
	for step, text := range []string{"small", strings.Repeat("x", maxInNews+1)} {
		if err := d.Commit(ctx, one, step+1, []byte(text), false); err != nil || count.sent.Swap(0) != 1 {
			t.Errorf("step %d took more or less than a message, %v", step+1, err)
		}
	}
	if !d.complete(1) || d.Newest(0) != 2 || d.Newest(1) != 1 {
		t.Errorf("the messages brought step %d and %d", d.Newest(0), d.Newest(1))
	}
}

// A store that is closed has closed all its connections without an error. One that is closed already says so.
func TestAStoreClosesWithoutAnError(t *testing.T) {
	s, err := Open(ctx, embedded(t).store)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Error(err)
	}
	if err := s.client.Ping(ctx).Err(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("a closed store answers: %v", err)
	}
	if err := s.Close(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
}

// bfloat16 rounds to the nearest value, and half way to the even one.
func TestBfloat16RoundsHalvesToEven(t *testing.T) {
	for bits, want := range map[uint32]uint32{
		0x3f807fff: 0x3f800000, 0x3f808000: 0x3f800000, 0x3f808001: 0x3f810000,
		0x3f817fff: 0x3f810000, 0x3f818000: 0x3f820000, 0x3f818001: 0x3f820000, 0x3f810000: 0x3f810000,
		0xbf808000: 0xbf800000, 0xbf818000: 0xbf820000, 0: 0,
	} {
		if got := math.Float32bits(roundBfloat16(math.Float32frombits(bits))); got != want {
			t.Errorf("%#x becomes %#x, want %#x", bits, got, want)
		}
	}
}

// A head cannot claim more tensors than its bytes have room for: each takes three.
func TestATableOfTensorsHasRoomForThem(t *testing.T) {
	for count, want := range map[int]string{4: "", 5: "", 6: "6 tensors in 15 bytes", 1 << 30: "1073741824 tensors in 15 bytes"} {
		got := ""
		if _, err := (&reader{rest: make([]byte, 15)}).tensors(count); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d tensors: %q, want %q", count, got, want)
		}
	}
}
