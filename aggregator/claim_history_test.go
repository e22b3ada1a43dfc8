package aggregator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
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
}

// claimHolder is the state of one update: who has it, and between which times the lease ends. The time of a call inside
// Redis is not known exactly, so neither is the end of its lease.
type claimHolder struct {
	owner           string // "": nobody had it yet
	attempt         int
	fence           uint64
	earliest, after time.Duration
}

// clockSlack is how exactly the clocks of the test and of Redis can be compared.
const clockSlack = 3 * time.Millisecond

// leased returns the holder with a lease that c gave it.
func (h claimHolder) leased(c claimCall) claimHolder {
	h.earliest, h.after = c.call+c.lease-clockSlack, c.ended+c.lease+clockSlack
	return h
}

// stepOfClaims says whether an update that h holds can give the answer a to the call c, and who holds it then.
func stepOfClaims(h claimHolder, c claimCall, a claimAnswer) (bool, claimHolder) {
	if c.kind != callClaim {
		if a.held != (h.fence == c.fence) {
			return false, h
		}
		if a.held {
			h = h.leased(c)
		}
		return true, h
	}
	same := h.owner == c.owner && h.attempt == c.attempt
	switch a.state {
	case Claimed:
		if same {
			return a.fence == h.fence, h.leased(c)
		}
		free := h.owner == "" || c.attempt > h.attempt || c.ended >= h.earliest
		return free && a.fence > h.fence, claimHolder{owner: c.owner, attempt: c.attempt, fence: a.fence}.leased(c)
	case ClaimBusy:
		return h.owner != "" && !same && h.attempt >= c.attempt && a.fence == h.fence && c.call <= h.after, h
	}
	return false, h
}

// claims is the promise of claims for porcupine. All calls have an order, and each has its place between its start and
// its end. In this order an update has one holder at a time, and its fences only grow.
var claims = porcupine.Model{
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
	Init: func() any { return claimHolder{} },
	Step: func(state, input, output any) (bool, any) {
		return stepOfClaims(state.(claimHolder), input.(claimCall), output.(claimAnswer))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// claimHistory has clients claim, renew and release the same few updates at once, and returns what they saw.
func claimHistory(t *testing.T, s *place, seed uint64, calls int) []porcupine.Operation {
	t.Helper()
	const clients, members, lease = 6, 2, 30 * time.Millisecond
	s.lease = lease
	var mu sync.Mutex
	var history []porcupine.Operation
	var all sync.WaitGroup
	began := time.Now()
	for client := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(client)))
		all.Go(func() {
			var held []Claim
			for range calls {
				time.Sleep(time.Duration(rng.IntN(int(lease / 4))))
				c := claimCall{lease: lease, member: rng.IntN(members), call: time.Since(began)}
				answer, err := makeClaimCall(s, rng, client, &c, &held)
				c.ended = time.Since(began)
				if err != nil {
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
	return history
}

// makeClaimCall draws a call, makes it and completes c. held are the claims of the client.
func makeClaimCall(s *place, rng *rand.Rand, client int, c *claimCall, held *[]Claim) (claimAnswer, error) {
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

// Whatever clients do at once, and while redis-server is paused, an update has one holder as long as its lease runs.
// Fences only grow, and a claim that was taken over is neither renewed nor released.
func TestHistoriesOfClaimsAreLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for name, start := range map[string]func(*testing.T) serverUnderTest{
		"embedded": embedded, "redis-server": func(t *testing.T) serverUnderTest {
			address := plainRedis(t)
			return serverUnderTest{disdel.Store{URLs: []string{address}}, []string{address}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := enter(t, start(t), "history-"+name)
			if name == "redis-server" {
				defer paused(t, s, seed)()
			}
			history := claimHistory(t, s, seed, 120)
			if result := porcupine.CheckOperationsTimeout(claims, history, time.Minute); result != porcupine.Ok {
				t.Errorf("%d calls: %s", len(history), result)
			}
		})
	}
}

// The checker finds scripts that break a promise.
func TestTheCheckerFindsBrokenClaims(t *testing.T) {
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
			s := enter(t, embedded(t), "broken")
			for seed := range uint64(20) {
				if !porcupine.CheckOperations(claims, claimHistory(t, s, seed, 40)) {
					return
				}
				s = enter(t, embedded(t), "broken")
			}
			t.Error("20 histories look right")
		})
	}
}
