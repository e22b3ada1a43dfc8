package sim_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler/sim"
)

const ms = disdel.Millis(time.Millisecond)

// reply is what became of a call that was made at a time.
type reply struct {
	sim.Reply
	done disdel.Millis
}

// calls makes calls at times and returns what became of each.
func calls(cfg sim.Config, at []disdel.Millis, list []sim.Call) ([]reply, *sim.Cloud) {
	var clock sim.Clock
	cloud := sim.NewCloud(&clock, cfg)
	out := make([]reply, len(list))
	for i := range list {
		clock.At(at[i], func() {
			cloud.Call(list[i], func(r sim.Reply) { out[i] = reply{r, clock.Now()} })
		})
	}
	for clock.Step() {
	}
	return out, cloud
}

func call(action string, memory disdel.Bytes, work disdel.Millis) sim.Call {
	return sim.Call{Namespace: "ns", Action: action, Memory: memory, Threads: 1, Work: work}
}

// A container is new at first and warm then; what waits is served in its order; idle containers, the oldest first,
// make room.
func TestContainersAreColdThenWarm(t *testing.T) {
	cfg := sim.Config{Memory: 2 * disdel.MB, Cold: 100 * ms, Warm: 10 * ms}
	got, cloud := calls(cfg, []disdel.Millis{0, 1000 * ms, 1000 * ms, 1000 * ms, 3000 * ms}, []sim.Call{
		call("a", disdel.MB, 500*ms), // cold
		call("a", disdel.MB, 500*ms), // warm
		call("b", disdel.MB, 500*ms), // cold, beside it
		call("c", disdel.MB, 500*ms), // waits for a's end, and takes its room
		call("a", disdel.MB, 500*ms), // cold again
	})
	for i, want := range []reply{
		{sim.Reply{Cold: true, Start: 100 * ms, Wait: 100 * ms, Duration: 500 * ms}, 600 * ms},
		{sim.Reply{Start: 1010 * ms, Wait: 10 * ms, Duration: 500 * ms}, 1510 * ms},
		{sim.Reply{Cold: true, Start: 1100 * ms, Wait: 100 * ms, Duration: 500 * ms}, 1600 * ms},
		{sim.Reply{Cold: true, Start: 1610 * ms, Wait: 610 * ms, Duration: 500 * ms}, 2110 * ms},
		{sim.Reply{Cold: true, Start: 3100 * ms, Wait: 100 * ms, Duration: 500 * ms}, 3600 * ms},
	} {
		if got[i] != want {
			t.Errorf("call %d: %+v, want %+v", i, got[i], want)
		}
	}
	if c := cloud.Totals; c.Calls != 5 || c.Cold != 4 || c.Evicted != 2 || c.Most != 2 {
		t.Errorf("%+v", c)
	}
}

// Activations share processors by their threads, and each gets as much as it can use where there are enough.
func TestProcessorsAreShared(t *testing.T) {
	cfg := sim.Config{Memory: 4 * disdel.MB, Processors: 2}
	two := call("two", disdel.MB, 600*ms)
	two.Threads = 2
	got, _ := calls(cfg, []disdel.Millis{0, 0, 300 * ms}, []sim.Call{
		call("one", disdel.MB, 600*ms), two, call("late", disdel.MB, 100*ms),
	})
	// Three threads on two processors until 300 ms: each activation has 200 ms of its 600 by then. With a fourth thread
	// they go at half their speed, and late ends after 200 ms, at 500: the others have 300. Then two thirds again: 450
	// more.
	for i, want := range []disdel.Millis{950 * ms, 950 * ms, 500 * ms} {
		if d := got[i].done - want; d < -ms || d > ms {
			t.Errorf("call %d ends at %v, want %v", i, got[i].done, want)
		}
	}
}

// Activations on the processors of one host slow each other down, as many as are at work, and not one that is alone.
func TestBusyProcessorsSlowEachOtherDown(t *testing.T) {
	cfg := sim.Config{Memory: 4 * disdel.MB, Processors: 3, Crowding: 0.5}
	got, _ := calls(cfg, []disdel.Millis{0, 0, 2000 * ms}, []sim.Call{
		call("one", disdel.MB, 400*ms), call("two", disdel.MB, 600*ms), call("alone", disdel.MB, 100*ms),
	})
	// Two of three take 1.25 times as long: one ends at 500 ms, and two has 200 ms left that it computes alone.
	for i, want := range []disdel.Millis{500 * ms, 700 * ms, 2100 * ms} {
		if d := got[i].done - want; d < -ms || d > ms {
			t.Errorf("call %d ends at %v, want %v", i, got[i].done, want)
		}
	}
}

// What takes too long is ended, and its container with it. A namespace has so many in flight, and so many a minute.
func TestLimitsAreKept(t *testing.T) {
	slow := call("slow", disdel.MB, 500*ms)
	slow.Timeout = 200 * ms
	got, cloud := calls(sim.Config{Memory: disdel.MB, Processors: 1}, []disdel.Millis{0, 1000 * ms},
		[]sim.Call{slow, call("slow", disdel.MB, 100*ms)})
	if !got[0].TimedOut || got[0].done != 200*ms || !got[1].Cold || cloud.TimedOut != 1 {
		t.Errorf("%+v, %+v", got, cloud.Totals)
	}
	one := call("one", disdel.MB, 100*ms)
	got, _ = calls(sim.Config{Memory: 4 * disdel.MB, Concurrent: 1}, []disdel.Millis{0, 50 * ms, 150 * ms},
		[]sim.Call{one, one, one})
	if got[0].Throttled || !got[1].Throttled || got[2].Throttled {
		t.Errorf("one at once: %+v", got)
	}
	other := one
	other.Namespace = "other"
	got, _ = calls(sim.Config{Memory: 4 * disdel.MB, PerMinute: 1},
		[]disdel.Millis{0, 1000 * ms, 1000 * ms, disdel.Millis(time.Minute)}, []sim.Call{one, one, other, one})
	if got[0].Throttled || !got[1].Throttled || got[2].Throttled || got[3].Throttled {
		t.Errorf("one a minute: %+v", got)
	}
}

// Whatever is called: every call is answered, no invoker holds more than it has, and the same calls come to the same.
func TestCloudsAnswerEveryCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := sim.Config{
			Invokers: rapid.IntRange(1, 5).Draw(t, "invokers"), Memory: 4 * disdel.MB, Cold: 50 * ms, Warm: ms,
			Processors: rapid.IntRange(0, 3).Draw(t, "processors"), Idle: 500 * ms,
		}
		var at []disdel.Millis
		var list []sim.Call
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			c := call(rapid.StringMatching("[a-e]").Draw(t, "action"), disdel.MB, 0)
			c.Memory = disdel.Bytes(1+int(c.Action[0]-'a')%4) * disdel.MB // an action has one limit
			c.Work = disdel.Millis(rapid.IntRange(0, 300).Draw(t, "work")) * ms
			c.Threads = rapid.IntRange(0, 3).Draw(t, "threads")
			c.Timeout = disdel.Millis(rapid.IntRange(0, 1).Draw(t, "timeout")*100) * ms
			at, list = append(at, disdel.Millis(rapid.IntRange(0, 2000).Draw(t, "at"))*ms), append(list, c)
		}
		got, cloud := calls(cfg, at, list)
		for i, r := range got {
			if r.done < at[i] || r.done == 0 && list[i].Work > 0 || !r.TimedOut && r.Duration < list[i].Work {
				t.Fatalf("call %d, at %v: %+v of %+v", i, at[i], r, list[i])
			}
		}
		if cloud.Calls != len(list) || cloud.Most > 4*cfg.Invokers {
			t.Fatalf("%+v", cloud.Totals)
		}
		if again, _ := calls(cfg, at, list); !reflect.DeepEqual(got, again) {
			t.Fatal("the same calls came to something else")
		}
	})
}

// A trace that is written is read as it was; what is wrong with a line is said with its number.
func TestTracesAreRead(t *testing.T) {
	jobs := sim.Generate(sim.Draw{Jobs: 50, Seed: 7, Every: 1000 * ms, Tenants: 4})
	var file bytes.Buffer
	if err := sim.Write(&file, jobs); err != nil {
		t.Fatal(err)
	}
	lines := file.String()
	got, err := sim.Read(strings.NewReader("\n" + lines + "  \n"))
	if err != nil || !reflect.DeepEqual(got, jobs) {
		t.Errorf("%d jobs were read of %d: %v", len(got), len(jobs), err)
	}
	first, _, _ := strings.Cut(lines, "\n")
	for _, c := range []struct{ file, says string }{
		{first + "\n" + first, "line 2: job-000000 stands in line 1 already"},
		{"{}", "line 1: job is missing"},
		{strings.Replace(first, `"epochs":`, `"epoch":`, 1), `line 1: is no job`},
		{strings.Replace(first, `"batchSize":`, `"batchSize":-`, 1), "line 1: rows, batchSize and epochs are at least 1"},
		{"\n\nnonsense", "line 3: is no job"},
	} {
		if _, err := sim.Read(strings.NewReader(c.file)); !errors.Is(err, disdel.Invalid) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%v\nlacks %q", err, c.says)
		}
	}
}

// Equal seeds draw equal jobs, others draw others, and as many more draw the same ones first.
func TestDrawsRepeat(t *testing.T) {
	draw := func(jobs int, seed uint64) []sim.Job {
		return sim.Generate(sim.Draw{Jobs: jobs, Seed: seed, Every: 1000 * ms, Tenants: 2})
	}
	if !reflect.DeepEqual(draw(20, 1), draw(20, 1)) || reflect.DeepEqual(draw(20, 1), draw(20, 2)) ||
		!reflect.DeepEqual(draw(20, 1), draw(30, 1)[:20]) {
		t.Error("draws do not repeat")
	}
}

// Longer jobs are the same ones, with more epochs.
func TestLongerJobsDifferInEpochsOnly(t *testing.T) {
	short, long := sim.Generate(sim.Draw{Jobs: 20, Seed: 5}), sim.Generate(sim.Draw{Jobs: 20, Seed: 5, Longer: 20})
	for i := range long {
		if long[i].Epochs < 21 {
			t.Errorf("%s has %d epochs", long[i].ID, long[i].Epochs)
		}
		if long[i].Epochs -= 20; !reflect.DeepEqual(long[i], short[i]) {
			t.Errorf("%+v, want %+v", long[i], short[i])
		}
	}
}
