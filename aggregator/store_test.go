package aggregator

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// redisServer starts a redis-server of its own, or skips; DISDEL_TEST_REDIS_URL names one that runs.
func redisServer(t *testing.T) string {
	t.Helper()
	if address := os.Getenv("DISDEL_TEST_REDIS_URL"); address != "" {
		return address
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	cmd := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--requirepass", "secret", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	address := "redis://:secret@127.0.0.1:" + port + "/0"
	for range 200 {
		if s, err := Open(context.Background(), disdel.Store{URL: address}); err == nil {
			s.Close()
			return address
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("redis-server did not come up")
	return ""
}

func embedded(t *testing.T) string {
	t.Helper()
	e, err := StartEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.URL()
}

// The same promises hold on the embedded store and on Redis.
func TestStoreConformance(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{"embedded": embedded, "redis-server": redisServer} {
		t.Run(name, func(t *testing.T) {
			address := start(t)
			for promise, check := range map[string]func(*testing.T, *Store){
				"an update comes back as it went": updatesComeBack, "what is missing is NotFound": missingIsNotFound,
				"large updates travel in parts": partsTravel, "damage is refused": damageIsRefused, "reduce is the weighted mean": reduceIsTheMean,
				"references are per round": referencesPerRound, "heartbeats bring back cancel": heartbeats, "sweep leaves nothing": sweepLeavesNothing,
				"drop leaves the newer rounds": dropLeavesNewer, "every key expires": keysExpire,
			} {
				t.Run(promise, func(t *testing.T) {
					s, err := Open(context.Background(), disdel.Store{URL: address, Prefix: "t" + strings.ReplaceAll(promise, " ", "-")})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					check(t, s)
				})
			}
			t.Run("a wrong password is Denied", func(t *testing.T) {
				u, _ := url.Parse(address)
				u.User = url.UserPassword("", "wrong")
				if _, err := Open(context.Background(), disdel.Store{URL: u.String()}); !errors.Is(err, disdel.Denied) {
					t.Errorf("got %v, want Denied", err)
				}
			})
		})
	}
}

func someWeights(seed uint64) disdel.Weights {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := disdel.Weights{{Name: "a.weight", Shape: []int{3, 4}, Data: make([]float32, 12)}, {Name: "a.bias", Shape: []int{3}, Data: make([]float32, 3)}}
	for _, t := range w {
		for i := range t.Data {
			t.Data[i] = float32(rng.NormFloat64())
		}
	}
	return w
}

func update(member int, samples float64) disdel.Update {
	return disdel.Update{ID: disdel.UpdateID{Job: "job-1", Round: 2, Member: member}, Attempt: 1, Samples: samples, Weights: someWeights(uint64(member))}
}

var ctx = context.Background()

func push(t *testing.T, s *Store, u disdel.Update) {
	t.Helper()
	if err := s.PushUpdate(ctx, u); err != nil {
		t.Fatal(err)
	}
}

func updatesComeBack(t *testing.T, s *Store) {
	u := update(1, 30)
	push(t, s, u)
	push(t, s, u) // a second delivery changes nothing
	got, err := s.FetchUpdate(ctx, u.ID, someWeights(9))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(u, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func missingIsNotFound(t *testing.T, s *Store) {
	if _, err := s.FetchUpdate(ctx, update(7, 1).ID, nil); !errors.Is(err, disdel.NotFound) {
		t.Errorf("update: got %v, want NotFound", err)
	}
	if _, err := s.Reference(ctx, "job-1", 3, nil); !errors.Is(err, disdel.NotFound) {
		t.Errorf("reference: got %v, want NotFound", err)
	}
}

func partsTravel(t *testing.T, s *Store) {
	s.part = 50
	updatesComeBack(t, s)
}

func damageIsRefused(t *testing.T, s *Store) {
	u := update(1, 30)
	push(t, s, u)
	data, err := s.client.GetRange(ctx, s.keys.update(u.ID), 0, -1).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-30] ^= 1
	s.client.Set(ctx, s.keys.update(u.ID), data, time.Minute)
	if _, err := s.FetchUpdate(ctx, u.ID, someWeights(1)); !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), "round 2") {
		t.Errorf("got %v, want Corrupt that names the update", err)
	}
	bad := update(2, 1)
	bad.Weights[0].Data[5] = float32(math.Inf(1))
	if err := s.PushUpdate(ctx, bad); !errors.Is(err, disdel.Diverged) {
		t.Errorf("infinity: got %v, want Diverged", err)
	}
	if err := s.PushUpdate(ctx, update(2, 0)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no samples: got %v, want Invalid", err)
	}
}

func reduceIsTheMean(t *testing.T, s *Store) {
	var ids []disdel.UpdateID
	var list []disdel.Update
	for m, n := range []float64{10, 30, 20} {
		u := update(m, n)
		push(t, s, u)
		ids, list = append(ids, u.ID), append(list, u)
	}
	got, err := s.Reduce(ctx, ids, someWeights(1))
	if err != nil {
		t.Fatal(err)
	}
	if got.Samples != 60 {
		t.Errorf("%g samples, want 60", got.Samples)
	}
	for i := range got.Weights {
		for k, v := range got.Weights[i].Data {
			want := (10*float64(list[0].Weights[i].Data[k]) + 30*float64(list[1].Weights[i].Data[k]) + 20*float64(list[2].Weights[i].Data[k])) / 60
			if math.Abs(float64(v)-want) > 1e-7 {
				t.Errorf("%s[%d] = %g, want %g", got.Weights[i].Name, k, v, want)
			}
		}
	}
	ids = append(ids, disdel.UpdateID{Job: "job-1", Round: 2, Member: 8})
	if _, err := s.Reduce(ctx, ids, someWeights(1)); !errors.Is(err, disdel.NotFound) {
		t.Errorf("a missing member: got %v, want NotFound", err)
	}
}

func referencesPerRound(t *testing.T, s *Store) {
	for r := range 2 {
		if err := s.PutReference(ctx, "job-1", r, someWeights(uint64(r))); err != nil {
			t.Fatal(err)
		}
	}
	for r := range 2 {
		got, err := s.Reference(ctx, "job-1", r, someWeights(0))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(someWeights(uint64(r)), got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", r, diff)
		}
	}
	if _, err := s.Reference(ctx, "job-1", 0, someWeights(0)[:1]); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("other shapes: got %v, want Corrupt", err)
	}
}

func heartbeats(t *testing.T, s *Store) {
	p := disdel.Progress{Task: disdel.TaskTrain, Member: 1, Epoch: 2, Batch: 3, Batches: 9, Loss: 0.5, Peak: 7}
	if cancel, err := s.Heartbeat(ctx, "job-1", p); err != nil || cancel {
		t.Fatalf("cancel %v, %v", cancel, err)
	}
	got, err := s.Progress(ctx, "job-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]disdel.Progress{p}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.Cancel(ctx, "job-1"); err != nil {
		t.Fatal(err)
	}
	if cancel, err := s.Heartbeat(ctx, "job-1", p); err != nil || !cancel {
		t.Errorf("after cancel: cancel %v, %v", cancel, err)
	}
	if cancel, _ := s.Heartbeat(ctx, "job-2", p); cancel {
		t.Error("another job was cancelled")
	}
}

func sweepLeavesNothing(t *testing.T, s *Store) {
	s.part = 40
	push(t, s, update(1, 1))
	s.PutReference(ctx, "job-1", 1, someWeights(1))
	s.Heartbeat(ctx, "job-1", disdel.Progress{Task: disdel.TaskTrain})
	s.Cancel(ctx, "job-1")
	if n, err := s.Sweep(ctx, "job-1"); err != nil || n < 4 {
		t.Errorf("swept %d, %v", n, err)
	}
	if left := s.client.Keys(ctx, s.keys.prefix+"*").Val(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func dropLeavesNewer(t *testing.T, s *Store) {
	s.part = 40
	for r := 1; r <= 10; r++ {
		u := update(0, 1)
		u.ID.Round = r
		push(t, s, u)
		s.PutReference(ctx, "job-1", r, someWeights(1))
	}
	if err := s.DropRound(ctx, "job-1", 1); err != nil {
		t.Fatal(err)
	}
	for r := 1; r <= 10; r++ {
		id := update(0, 1).ID
		id.Round = r
		_, err := s.FetchUpdate(ctx, id, someWeights(1))
		_, err2 := s.Reference(ctx, "job-1", r, someWeights(1))
		if gone := errors.Is(err, disdel.NotFound) && errors.Is(err2, disdel.NotFound); gone != (r == 1) {
			t.Errorf("round %d: %v, %v", r, err, err2)
		}
	}
}

func keysExpire(t *testing.T, s *Store) {
	s.part = 40
	push(t, s, update(1, 1))
	s.PutReference(ctx, "job-1", 1, someWeights(1))
	s.Heartbeat(ctx, "job-1", disdel.Progress{Task: disdel.TaskTrain})
	s.Cancel(ctx, "job-1")
	keys := s.client.Keys(ctx, s.keys.prefix+"*").Val()
	if len(keys) < 5 {
		t.Fatalf("only %v", keys)
	}
	for _, k := range keys {
		if ttl := s.client.TTL(ctx, k).Val(); ttl <= 0 || ttl > keyLife {
			t.Errorf("%s lives for %v", k, ttl)
		}
	}
}

func TestAStoreThatIsNotThereIsUnavailable(t *testing.T) {
	if _, err := Open(ctx, disdel.Store{URL: "redis://127.0.0.1:1/0"}); !errors.Is(err, disdel.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
	if _, err := Open(ctx, disdel.Store{URL: "http://x"}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}

// R11: every truncation and every flipped bit of an update is refused.
func TestEveryDamageOfAnUpdateIsRefused(t *testing.T) {
	u := update(1, 3)
	data, err := encode(u)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(data, u.ID, u.Weights); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := decode(data[:n], u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	for bit := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := decode(bad, u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
}

func TestForeignUpdatesAreRefused(t *testing.T) {
	u := update(1, 3)
	data, err := encode(u)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*disdel.UpdateID){
		"job": func(id *disdel.UpdateID) { id.Job = "job-2" }, "round": func(id *disdel.UpdateID) { id.Round++ },
		"level": func(id *disdel.UpdateID) { id.Level++ }, "member": func(id *disdel.UpdateID) { id.Member++ },
	} {
		id := u.ID
		change(&id)
		if _, err := decode(data, id, u.Weights); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	like := someWeights(1)
	like[0].Shape = []int{4, 3}
	if _, err := decode(data, u.ID, like); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("another shape: %v", err)
	}
	binary.LittleEndian.PutUint16(data[4:], 2)
	if _, err := decode(data, u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("another version: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	u := update(1, 3)
	data, _ := encode(u)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := decode(data, u.ID, u.Weights); err != nil && !errors.Is(err, disdel.Corrupt) && !errors.Is(err, disdel.Diverged) {
			t.Fatalf("got %v", err)
		}
	})
}

// Any tree of means equals the flat mean; equal orders give equal bits.
func TestTreesOfMeansEqualTheFlatMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "updates")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		samples := rapid.SliceOfN(rapid.Float64Range(1, 1e4), n, n).Draw(t, "samples")
		mean := func(from, to int) (disdel.Weights, float64) {
			var m Mean
			for i := from; i < to; i++ {
				if err := m.Add(someWeights(uint64(i)), samples[i]); err != nil {
					t.Fatal(err)
				}
			}
			return m.Result()
		}
		flat, total := mean(0, n)
		again, _ := mean(0, n)
		if diff := cmp.Diff(flat, again); diff != "" {
			t.Fatalf("equal orders differ:\n%s", diff)
		}
		var top Mean
		for _, r := range [][2]int{{0, cut}, {cut, n}} {
			if r[0] < r[1] {
				w, s := mean(r[0], r[1])
				if err := top.Add(w, s); err != nil {
					t.Fatal(err)
				}
			}
		}
		tree, sum := top.Result()
		if math.Abs(sum-total) > 1e-6*total {
			t.Fatalf("%g samples, want %g", sum, total)
		}
		for i := range flat {
			for k := range flat[i].Data {
				if d := math.Abs(float64(flat[i].Data[k] - tree[i].Data[k])); d > 1e-5 {
					t.Fatalf("%s[%d] differs by %g", flat[i].Name, k, d)
				}
			}
		}
	})
}
