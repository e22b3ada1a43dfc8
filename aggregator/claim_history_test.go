package aggregator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/faults"
	"github.com/disdel/disdel/internal/test/race"
)

// The calls of a history.
const (
	callClaim = iota
	callRenew
	callRelease
)

// claimCall is one call of one client, with the time in which it was made.
type claimCall struct {
	kind    int
	member  int    // of the update; each is a history of its own
	owner   string // callClaim
	attempt int    // callClaim
	fence   uint64 // callRenew and callRelease
	lease   time.Duration
	call    time.Duration // since the start of the history
	ended   time.Duration
}

// claimAnswer is what a call returned.
type claimAnswer struct {
	state ClaimState // callClaim
	fence uint64     // callClaim: of the claim, or of its holder
	held  bool       // callRenew and callRelease: the fence was current
	lost  bool       // there was no answer: the call may have been done, at any time until the end of the history
}

// claimHolder is the state of one update: who has it, and between which times the lease ends. The time of a call inside
// Redis is not known exactly, so neither is the end of its lease.
type claimHolder struct {
	owner           string // "": nobody had it yet
	attempt         int
	fence           uint64
	above           bool // the fence is one above this one: its claim's answer was lost
	earliest, after time.Duration
}

// clockSlack is how exactly the clocks of the test and of Redis can be compared.
const clockSlack = 3 * time.Millisecond

// leased returns the holder with a lease that c gave it.
func (h claimHolder) leased(c claimCall) claimHolder {
	h.earliest, h.after = c.call+c.lease-clockSlack, c.ended+c.lease+clockSlack
	return h
}

// told returns the holder if its fence can be this one.
func (h claimHolder) told(fence uint64) (claimHolder, bool) {
	if h.above {
		can := fence > h.fence
		h.fence, h.above = fence, false
		return h, can
	}
	return h, h.fence == fence
}

// stepOfClaims returns who can hold an update after the call c with the answer a, if h held it before; none: this
// answer cannot be.
func stepOfClaims(h claimHolder, c claimCall, a claimAnswer) []any {
	var after claimHolder
	possible := false
	switch same := h.owner == c.owner && h.attempt == c.attempt; {
	case a.lost:
		return stepOfLostClaims(h, c)
	case c.kind != callClaim: // who knows a fence was told it before: h is not above one
		if after = h; a.held {
			after = h.leased(c)
		}
		possible = a.held == (h.fence == c.fence && !h.above)
	case a.state == Claimed && same:
		after, possible = h.told(a.fence)
		after = after.leased(c)
	case a.state == Claimed:
		after = claimHolder{owner: c.owner, attempt: c.attempt, fence: a.fence}.leased(c)
		possible = h.isFreeFor(c) && a.fence > h.fence
	case a.state == ClaimBusy:
		after, possible = h.told(a.fence)
		possible = possible && h.owner != "" && !same && h.attempt >= c.attempt && c.call <= h.after
	}
	if possible {
		return []any{after}
	}
	return nil
}

// isFreeFor tells whether a claim can take the update over.
func (h claimHolder) isFreeFor(c claimCall) bool {
	return h.owner == "" || c.attempt > h.attempt || c.ended >= h.earliest
}

// stepOfLostClaims is stepOfClaims for a call without an answer: nothing happened, or all of it.
func stepOfLostClaims(h claimHolder, c claimCall) []any {
	out := []any{h}
	switch {
	case c.kind != callClaim && (h.fence != c.fence || h.above):
	case c.kind != callClaim, h.owner == c.owner && h.attempt == c.attempt:
		out = append(out, h.leased(c))
	case h.isFreeFor(c):
		out = append(out, claimHolder{owner: c.owner, attempt: c.attempt, fence: h.fence, above: true}.leased(c))
	}
	return out
}

// claims is the promise of claims for porcupine. All calls have an order, and each has its place between its start and
// its end. In this order an update has one holder at a time, and its fences only grow.
var claims = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byMember := map[int][]porcupine.Operation{}
		for _, o := range history {
			m := o.Input.(claimCall).member
			byMember[m] = append(byMember[m], o)
		}
		var out [][]porcupine.Operation
		for _, one := range byMember {
			out = append(out, one)
		}
		return out
	},
	Init: func() []any { return []any{claimHolder{}} },
	Step: func(state, input, output any) []any {
		return stepOfClaims(state.(claimHolder), input.(claimCall), output.(claimAnswer))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}).ToModel()

// claimLease is the lease of claims in a history.
const claimLease = 30 * time.Millisecond

// claimHistory has clients claim, renew and release the same few updates at once, and returns what they saw. Over a
// line with faults they wait for an answer no longer than two leases.
func claimHistory(t *testing.T, s *place, seed uint64, calls int, line *faults.Line) []porcupine.Operation {
	t.Helper()
	const clients, members = 6, 2
	s.lease = claimLease
	var mu sync.Mutex
	var history []porcupine.Operation
	var all sync.WaitGroup
	began := time.Now()
	for client := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(client)))
		all.Go(func() {
			var held []Claim
			for range calls {
				time.Sleep(time.Duration(rng.IntN(int(claimLease / 4))))
				c := claimCall{lease: claimLease, member: rng.IntN(members), call: time.Since(began)}
				limited, stop := ctx, context.CancelFunc(func() {})
				if line != nil {
					limited, stop = context.WithTimeout(ctx, 2*claimLease)
				}
				answer, err := makeClaimCall(limited, s, rng, client, &c, &held)
				stop()
				c.ended = time.Since(began)
				if answer.lost = err != nil; err != nil && line == nil {
					t.Error(err)
					return
				}
				mu.Lock()
				history = append(history, porcupine.Operation{
					ClientId: client, Input: c, Call: int64(c.call), Output: answer, Return: int64(c.ended),
				})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	ended := time.Since(began)
	for i, o := range history { // what got no answer may have been done until now
		if c := o.Input.(claimCall); o.Output.(claimAnswer).lost {
			c.ended = ended
			history[i].Input, history[i].Return = c, int64(ended)
		}
	}
	return history
}

// makeClaimCall draws a call, makes it and completes c. held are the claims of the client.
func makeClaimCall(ctx context.Context, s *place, rng *rand.Rand, client int, c *claimCall, held *[]Claim) (
	claimAnswer, error,
) {
	if len(*held) == 0 || rng.IntN(2) == 0 {
		c.owner, c.attempt = "client-"+strconv.Itoa(client), 1+rng.IntN(3)
		got, state, err := s.Claim(ctx, update(c.member, 1).ID, c.owner, c.attempt)
		if state == Claimed {
			*held = append(*held, got)
		}
		return claimAnswer{state: state, fence: got.Fence}, err
	}
	old := (*held)[rng.IntN(len(*held))]
	c.member, c.fence = old.ID.Member, old.Fence
	var err error
	if c.kind = callRenew; rng.IntN(3) == 0 {
		c.kind, c.lease = callRelease, 0
		err = s.Release(ctx, old)
	} else {
		_, err = s.Renew(ctx, old)
	}
	if errors.Is(err, disdel.Conflict) {
		return claimAnswer{}, nil
	}
	return claimAnswer{held: true}, err
}

// paused stops a redis-server now and then, for about the length of a lease, until stop is called.
func paused(t *testing.T, s *place, seed uint64) (stop func()) {
	t.Helper()
	var pid int
	for line := range strings.Lines(s.admins[0].Info(ctx, "server").Val()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok {
			pid, _ = strconv.Atoi(text)
		}
	}
	if pid <= 1 {
		t.Fatal("redis-server does not say which process it is")
	}
	rng := rand.New(rand.NewPCG(seed, 39))
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Duration(rng.IntN(60)) * time.Millisecond):
			}
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// claimServers start the servers that histories of claims are taken from.
var claimServers = map[string]func(*testing.T) serverUnderTest{
	"embedded": embedded,
	"redis-server": func(t *testing.T) serverUnderTest {
		address := plainRedis(t)
		return serverUnderTest{disdel.Store{URLs: []string{address}}, []string{address}}
	},
}

// Whatever clients do at once, and while redis-server is paused, an update has one holder as long as its lease runs.
// Fences only grow, and a claim that was taken over is neither renewed nor released.
func TestHistoriesOfClaimsAreLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for name, start := range claimServers {
		t.Run(name, func(t *testing.T) {
			s := enter(t, start(t), "history-"+name)
			if name == "redis-server" {
				defer paused(t, s, seed)()
			}
			history := claimHistory(t, s, seed, 120, nil)
			if result := porcupine.CheckOperationsTimeout(claims, history, time.Minute); result != porcupine.Ok {
				t.Errorf("%d calls: %s", len(history), result)
			}
		})
	}
}

// overLine puts a line before a server. Its clients try each command once.
func overLine(t *testing.T, at serverUnderTest, seed uint64) (serverUnderTest, *faults.Line) {
	t.Helper()
	u, err := url.Parse(at.store.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	line := &faults.Line{}
	u.Host, u.RawQuery = line.To(t, u.Host, rand.New(rand.NewPCG(seed, 40))), "max_retries=-1"
	at.store.URLs = []string{u.String()}
	return at, line
}

// The same holds where connections to Redis stand still in one direction or both, break, and deliver what their sender
// has given up. A call without an answer may have been done late, or never.
func TestHistoriesOfClaimsAreLinearizableUnderPartitions(t *testing.T) {
	SilenceRedis() // of what is cut go-redis says that it comes to nobody
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for name, start := range claimServers {
		t.Run(name, func(t *testing.T) {
			at, line := overLine(t, start(t), seed)
			calls, lost := 0, 0
			for run := range uint64(4) {
				s := enter(t, at, fmt.Sprint("cut-", run))
				pass := line.Partition(4 * claimLease)
				if name == "redis-server" {
					resume := paused(t, s, seed+run)
					cut := pass
					pass = func() { cut(); resume() }
				}
				history := claimHistory(t, s, seed+run, 30, line)
				pass()
				if result := porcupine.CheckOperationsTimeout(claims, history, time.Minute); result != porcupine.Ok {
					t.Errorf("run %d, %d calls: %s", run, len(history), result)
				}
				for _, o := range history {
					calls++
					if o.Output.(claimAnswer).lost {
						lost++
					}
				}
			}
			t.Logf("%d calls, %d without an answer", calls, lost)
			if lost == 0 || lost == calls {
				t.Errorf("of %d calls %d got no answer: the line did not do its work", calls, lost)
			}
		})
	}
}

// The checker finds scripts that break a promise, also over a line with faults.
func TestTheCheckerFindsBrokenClaims(t *testing.T) {
	race.SkipSequential(t)
	for what, script := range map[string]struct {
		of            **redis.Script
		lua, from, to string
	}{
		"a lease that keeps nobody out":  {&claimScript, claimLua, "tonumber(w[4]) > now and ", "false and "},
		"a lower attempt takes over":     {&claimScript, claimLua, " and tonumber(w[2]) >= tonumber(ARGV[2])", " and false"},
		"a lease that never ends":        {&claimScript, claimLua, "tonumber(w[4]) > now", "true"},
		"a fence that does not grow":     {&claimScript, claimLua, "fence = math.max(fence + 1, ", "fence = 7 --"},
		"a renewal under any fence":      {&renewScript, renewLua, "~= ARGV[1]", "== 'none'"},
		"a release that releases nobody": {&renewScript, renewLua, "now + tonumber(ARGV[2])", "now + 30"},
	} {
		t.Run(what, func(t *testing.T) {
			broken := strings.Replace(script.lua, script.from, script.to, 1)
			if broken == script.lua {
				t.Fatalf("the script has no %q", script.from)
			}
			whole := *script.of
			*script.of = redis.NewScript(broken)
			defer func() { *script.of = whole }()
			for _, faulty := range []bool{false, true} {
				if !findsBrokenClaims(t, faulty) {
					t.Errorf("20 histories look right; faults: %v", faulty)
				}
			}
		})
	}
}

// findsBrokenClaims tells whether one of twenty histories looks wrong.
func findsBrokenClaims(t *testing.T, faulty bool) bool {
	t.Helper()
	for seed := range uint64(20) {
		at, line := embedded(t), (*faults.Line)(nil)
		if faulty {
			at, line = overLine(t, at, seed)
		}
		s, stop := enter(t, at, "broken"), func() {}
		if faulty {
			stop = line.Partition(4 * claimLease)
		}
		history := claimHistory(t, s, seed, 40, line)
		stop()
		if porcupine.CheckOperationsTimeout(claims, history, time.Minute) == porcupine.Illegal {
			return true
		}
	}
	return false
}
