package actions

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

var (
	exchangeSeed  = flag.Uint64("exchange-seed", 1, "the first seed that gangs are drawn from")
	exchangeGangs = flag.Int("exchange-gangs", 12, "how many gangs are drawn")
)

// drawn is a gang that a seed says, and what becomes of its members.
type drawn struct {
	all    []disdel.TrainRequest
	model  string
	blows  [][]blow // what happens to each one's attempts
	goes   int      // the member that leaves while the round runs; -1: none does
	after  int      // the step that all have sent by then
	pause  time.Duration
	bySeed string
}

// fixed tells whether the gang comes to the same bits in every run.
func (d *drawn) fixed() bool { return d.all[0].Exchange.Order != disdel.OrderEager && d.goes < 0 }

// bulk tells whether the gang is one in lock-step that sends all that it computes.
func (d *drawn) bulk() bool {
	x := d.all[0].Exchange
	return d.fixed() && x.Threshold == 0 && x.Slack == 0 && (x.Values == "" || x.Values == disdel.WireFloat32)
}

func (d *drawn) String() string {
	var rows []int
	for _, r := range d.all {
		rows = append(rows, r.Shard.Len())
	}
	return fmt.Sprintf("%s: %s, batches of %d of %v rows, %+v, %d servers, %v, member %d goes after %d", d.bySeed, d.model,
		d.all[0].BatchSize, rows, *d.all[0].Exchange, len(d.all[0].Store.URLs), d.blows, d.goes, d.after)
}

// anyOf is one of some values.
func anyOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// regression makes the bench's data set clicks or, for a linear one, ratings, and its network a regression on them.
func (b *bench) regression(name string) disdel.TrainRequest {
	b.t.Helper()
	in, err := sparse.MadeClicks{Rows: 400, Features: 300, Seed: 2}.Input("rows")
	if name == "linear" {
		in, err = sparse.MadeRatings{Users: 30, Items: 20, Ratings: 290, Seed: 1}.Input("rows")
	}
	if err != nil {
		b.t.Fatal(err)
	}
	sets, err := dataset.OpenStore(b.t.Context(), b.data.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer sets.Close()
	m, err := sets.AddSparse(b.t.Context(), in, true)
	if err != nil {
		b.t.Fatal(err)
	}
	b.data.Name, b.data.Checksum = "rows", m.Checksum()
	found, _ := model.FindSparse(name)
	b.net = found.Describe(m.Info(b.data.Split), 0, disdel.Init{Seed: 3})
	return disdel.TrainRequest{
		Job: "job-1", Attempt: 1, Network: b.net, Data: b.data, TrainRange: disdel.TrainRange{Epochs: 2}, Threads: 1,
		Store: b.store,
	}
}

// draw makes the bench one of a gang that a seed says.
func (b *bench) draw(seed uint64) *drawn {
	rng := rand.New(rand.NewPCG(seed, 17))
	for range rng.IntN(2) {
		redis, err := embedded.Start()
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { redis.Close() })
		b.store.URLs = append(b.store.URLs, redis.URL())
		b.reopen()
	}
	d := &drawn{
		goes: -1, bySeed: fmt.Sprintf("-exchange-seed %d", seed),
		model: anyOf(rng, "pmf", "pmf", "logistic", "linear", "digits"),
	}
	req := b.learner(rng, d.model)
	members := 1 + rng.IntN(6)
	if x := req.Exchange; x.Queued() {
		req.TrainRange.Epochs = 1
		d.all = queued(req, members, 1+rng.IntN(150))
		for i := range d.all {
			d.all[i].Exchange = x
		}
	} else {
		d.all = uneven(rng, req, members)
	}
	steps := d.all[0].Steps
	if members > 1 && rng.IntN(3) == 0 {
		d.goes, d.after = members-1, rng.IntN(steps+1)
	}
	for range members {
		var mine []blow
		for range rng.IntN(3) {
			mine = append(mine, blow{1 + rng.IntN(30+3*steps), fate(rng.IntN(int(fates)))})
		}
		d.blows = append(d.blows, mine)
	}
	d.pause = time.Duration(rng.IntN(60)) * time.Millisecond
	return d
}

// learner is a worker's request for a model, with an optimiser and an exchange that are drawn.
func (b *bench) learner(rng *rand.Rand, name string) (req disdel.TrainRequest) {
	switch name {
	case "pmf":
		req = b.ratings(anyOf(rng, 1, 4, 13, 40))
	case "digits":
		req = b.train(0)
	default:
		req = b.regression(name)
	}
	req.BatchSize = anyOf(rng, 3, 8, 25)
	req.Optimizer = anyOf(rng,
		disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01}},
		disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.8, Nesterov: true}},
		disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}})
	req.Exchange = &disdel.Exchange{
		Threshold: anyOf(rng, 0, 0, 0.05, 0.7, 100), Slack: anyOf(rng, 0, 0, 1, 3),
		Order:   anyOf(rng, disdel.OrderFixed, disdel.OrderFixed, disdel.OrderEager),
		Combine: anyOf(rng, disdel.CombineMean, disdel.CombineSum), Batches: disdel.BatchesShard,
		Values: anyOf(rng, "", disdel.WireFloat32, disdel.WireBfloat16, disdel.WireInt8),
	}
	if x := req.Exchange; x.Order == disdel.OrderEager && rng.IntN(2) == 0 {
		x.Batches = disdel.BatchesQueue
	}
	if rng.IntN(3) == 0 {
		req.SaveEvery = disdel.Millis(time.Millisecond)
	}
	return req
}

// uneven are the requests of members whose shards are of any sizes, of less than a batch among them.
func uneven(rng *rand.Rand, req disdel.TrainRequest, members int) (all []disdel.TrainRequest) {
	at, steps := 0, 0
	for m := range members {
		r := req
		r.Worker, r.Members = m, members
		r.Shard = disdel.RowRange{Start: at, End: at + 1 + rng.IntN(anyOf(rng, 3, 35))}
		at = r.Shard.End
		size := min(r.BatchSize, r.Shard.Len())
		steps = max(steps, r.Epochs*((r.Shard.Len()+size-1)/size))
		all = append(all, r)
	}
	for m := range all {
		all[m].Steps = steps
	}
	return all
}

// Gangs that are drawn come to what is promised of them, whatever is done to their members: nobody hangs, all that stay
// end with the same bits; in a fixed order these are those of an undisturbed run, and without a threshold and a slack
// those of workers that step from the same weights, whose updates are added up by hand; each batch of a queue counts
// once. The store holds no more than is counted before a job. More of them: -exchange-gangs 500 -exchange-seed N.
func TestGangsThatAreDrawnComeToWhatIsPromised(t *testing.T) {
	aggregator.SilenceRedis()
	for n := range *exchangeGangs {
		if testing.Short() && n == 3 {
			break
		}
		t.Run(fmt.Sprint("seed ", *exchangeSeed+uint64(n)), func(t *testing.T) {
			b := setUp(t)
			d := b.draw(*exchangeSeed + uint64(n))
			b.holds(d)
			if t.Failed() {
				t.Log(d)
			}
		})
	}
}

// holds runs a gang twice, undisturbed and with what is done to it, and holds both to what is promised.
func (b *bench) holds(d *drawn) {
	b.t.Helper()
	var want []disdel.Weights
	if d.fixed() {
		want, _ = b.struck(d.all, nil, 0)
		b.room(d)
		if d.bulk() && !b.t.Failed() {
			if byHand := b.byHand(d.all); !equal(byHand, want[0]) {
				b.t.Error("undisturbed it comes to other weights than by hand")
			}
		}
		b.forget()
		for m := range d.all {
			d.all[m].Attempt = 10
		}
	}
	got := b.disturbed(d)
	samples := 0
	for m, w := range got {
		if want != nil && !equal(w, want[m]) {
			b.t.Errorf("member %d delivers other weights than undisturbed", m)
		}
		if !equal(w, got[0]) {
			b.t.Errorf("member %d delivers other weights than member 0", m)
		}
		if d.goes < 0 {
			samples += b.result(d.all[m]).Samples
		}
	}
	if x := d.all[0].Exchange; x.Queued() && len(d.all) > 1 && d.goes < 0 && samples != d.all[0].Shard.Len() {
		b.t.Errorf("%d rows of %d count", samples, d.all[0].Shard.Len())
	}
}

// disturbed runs a gang with what is done to it, and returns what those who stay deliver.
func (b *bench) disturbed(d *drawn) []disdel.Weights {
	b.t.Helper()
	if d.goes < 0 {
		got, _ := b.struck(d.all, d.blows, d.pause)
		return got
	}
	var going sync.WaitGroup
	defer going.Wait()
	going.Go(func() {
		if d.all[0].Exchange.Queued() {
			b.goes(d.all[d.goes], d.after)
			return
		}
		b.dies(d.all[d.goes], max(1, d.after))
		if err := b.board.EndMember(b.t.Context(), d.all[0].Job, d.all[0].Round, d.goes); err != nil {
			b.t.Error(err)
		}
	})
	got, _ := b.struck(d.all[:d.goes], d.blows, d.pause)
	return got
}

// room holds what the store has of a round to what is counted for it.
func (b *bench) room(d *drawn) {
	b.t.Helper()
	need := aggregator.Need{Workers: len(d.all)}
	net := engine.InitWeights(mustBuild(b.t, b.net), b.net.Init)
	need.Update = aggregator.WireBytes(net, disdel.WireFloat32)
	need.Reference = need.Update
	if d.all[0].SaveEvery > 0 {
		need.State = 6 * need.Update // weights and two moments; S, what is not in it, what was sent
	}
	deltas := b.board.Deltas(d.all[0].Job, d.all[0].Round, len(d.all))
	if err := deltas.ReadLog(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	for m := range d.all {
		for step := 1; step <= deltas.LastStep(m); step++ {
			data, err := deltas.Own(b.t.Context(), step, m)
			if err != nil {
				b.t.Fatal(err)
			}
			size := disdel.Bytes(len(data))
			if need.Last = max(need.Last, size); step < deltas.LastStep(m) {
				need.Deltas, need.Delta = need.Deltas+1, max(need.Delta, size)
			}
		}
	}
	servers, err := b.board.Capacity(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var used disdel.Bytes
	for _, s := range servers {
		used += s.Used
	}
	const connections = 256 * disdel.KB // of each process, and of two more: the embedded store counts none
	if counted := need.Bytes() - disdel.Bytes(len(d.all)+2)*connections; used > counted || len(d.all) > 1 && used == 0 {
		b.t.Errorf("the store holds %v of %v: %v", used, counted, need)
	}
}
