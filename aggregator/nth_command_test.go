package aggregator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
)

// errNoAnswer is what the caller of a failing command gets; go-redis leaves out the outer error if a connection's first
// command fails.
var errNoAnswer = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("no answer")}

// nthFails lets one command to Redis fail, or one pipeline of commands.
type nthFails struct {
	left atomic.Int64 // commands before the one that fails
	done bool         // the command arrives, and its answer is lost
}

func (f *nthFails) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *nthFails) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.left.Add(-1) != 0 {
			return next(ctx, cmd)
		}
		if f.done {
			next(ctx, cmd)
		}
		cmd.SetErr(errNoAnswer)
		return errNoAnswer
	}
}

func (f *nthFails) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		if f.left.Add(-1) != 0 {
			return next(ctx, all)
		}
		if f.done {
			next(ctx, all)
		}
		for _, cmd := range all {
			cmd.SetErr(errNoAnswer)
		}
		return errNoAnswer
	}
}

// script makes calls to a store one after another, and ends with the first error.
type script struct {
	s   *place
	job disdel.JobID
	err error
}

func (c *script) do(what string, call func() error) {
	if c.err == nil {
		if err := call(); err != nil {
			c.err = fmt.Errorf("%s: %w", what, err)
		}
	}
}

func (c *script) id(member int) disdel.UpdateID {
	return disdel.UpdateID{Job: c.job, Round: 2, Member: member}
}

func (c *script) claim(id disdel.UpdateID) (out Claim) {
	c.do("claim", func() (err error) {
		out, _, err = c.s.Claim(ctx, id, "me", 1)
		return err
	})
	return out
}

// push pushes an update of three columns.
func (c *script) push(member int, w disdel.Weights) {
	c.do("push", func() error {
		return c.s.PushUpdate(ctx, disdel.Update{ID: c.id(member), Samples: 30, Weights: w})
	})
}

func (c *script) updates() {
	like := someWeights(9)
	c.do("put reference", func() error { return c.s.PutReference(ctx, c.job, 2, like) })
	c.push(1, someWeights(1))
	c.do("push encoded", func() error {
		f, err := NewFeedback(Format{Wire: disdel.WireBfloat16}, nil)
		if err != nil {
			return err
		}
		f.column = c.s.column
		e, err := f.Encode(someWeights(2), like)
		if err != nil {
			return err
		}
		return c.s.PushEncoded(ctx, disdel.Update{ID: c.id(2), Samples: 10}, e)
	})
	for member := 1; member <= 2; member++ {
		c.do("fetch", func() error { _, err := c.s.FetchUpdate(ctx, c.id(member), like); return err })
		c.do("meta", func() error { _, err := c.s.UpdateMeta(ctx, c.id(member)); return err })
	}
	c.do("delivered", func() error { _, _, err := c.s.Delivered(ctx, c.id(1)); return err })
	c.do("reference", func() error { _, err := c.s.Reference(ctx, c.job, 2, like); return err })
	c.do("stream reference", func() error {
		return c.s.StreamReference(ctx, c.job, 2, like, func([]float32) error { return nil })
	})
}

func (c *script) claims() {
	own := c.claim(c.id(0))
	c.do("renew", func() error { _, err := c.s.Renew(ctx, own); return err })
	c.do("draw", func() error { _, _, err := c.s.DrawBatch(ctx, own, 1, 4); return err })
	c.do("let go", func() error { return c.s.LetGo(ctx, c.job, 2, 0) })
	c.do("is let go", func() error { _, err := c.s.IsLetGo(ctx, c.job, 2, 0); return err })
	c.do("heartbeat", func() error {
		_, err := c.s.Heartbeat(ctx, c.job, disdel.Progress{Round: 2, Loss: 1})
		return err
	})
	c.do("progress", func() error {
		p, err := c.s.Progress(ctx, c.job)
		if err == nil && len(p) != 1 {
			return fmt.Errorf("%d heartbeats", len(p))
		}
		return err
	})
	c.do("counts", func() error { _, err := c.s.Counts(ctx, c.job); return err })
	c.do("release", func() error { return c.s.Release(ctx, own) })
	c.do("end", func() error { return c.s.EndMember(ctx, c.job, 2, 0) })
	c.push(1, someWeights(1))
	c.do("cancel", func() error { return c.s.Cancel(ctx, c.job) })
	c.do("keep", func() error { return c.s.Keep(ctx, c.job, "mark") })
	c.do("take up", func() error { _, err := c.s.TakeUp(ctx, c.job, "mark"); return err })
	c.do("drop", func() error { return c.s.DropRound(ctx, c.job, 2) })
	c.do("forget", func() error { return c.s.Forget(ctx, c.job, 3) })
	c.do("sweep", func() error { _, err := c.s.Sweep(ctx, c.job); return err })
}

func (c *script) states() {
	own, like := c.claim(c.id(0)), someWeights(3)
	c.do("put", func() error { return c.s.PutState(ctx, c.id(0), own, map[string]string{"at": "1"}, like) })
	c.do("get", func() error { _, _, err := c.s.State(ctx, c.id(0), like); return err })
	from := StateSource{Tensors: like, Read: func(i int) []float32 { return like[i].Data }}
	c.do("write", func() error { return c.s.WriteState(ctx, c.id(0), own, nil, from) })
	c.do("read", func() error {
		return c.s.ReadState(ctx, c.id(0), func(map[string]string) (func(disdel.Tensor) error, error) {
			return func(disdel.Tensor) error { return nil }, nil
		})
	})
}

func (c *script) means() {
	like := someWeights(9)
	c.do("put reference", func() error { return c.s.PutReference(ctx, c.job, 0, like) })
	var ids []disdel.UpdateID
	for member := range 2 {
		id := disdel.UpdateID{Job: c.job, Member: member}
		c.do("push", func() error {
			return c.s.PushUpdate(ctx, disdel.Update{ID: id, Samples: 1, Weights: someWeights(uint64(member))})
		})
		ids = append(ids, id)
	}
	c.do("mean", func() error { return shardedMean(c.s, c.job, [][]disdel.UpdateID{ids}, like, 2) })
	c.do("reference", func() error { _, err := c.s.Reference(ctx, c.job, 1, like); return err })
}

func (c *script) joins() {
	parts := []disdel.Weights{someWeights(1), someWeights(2)[:1]}
	parts[1][0].Name = "b.weight"
	c.push(0, parts[0])
	c.push(1, parts[1])
	id := c.id(0)
	id.Level = 1
	own := c.claim(id)
	c.do("join", func() error {
		m, err := c.s.Join(ctx, own, Reduction{
			Members: []disdel.UpdateID{c.id(0), c.id(1)}, Like: append(append(disdel.Weights{}, parts[0]...), parts[1]...),
		})
		if err != nil {
			return err
		}
		return c.s.CommitMean(ctx, m)
	})
}

func (c *script) deltas() {
	one, two := c.claim(c.id(0)), c.claim(c.id(1))
	large := strings.Repeat("x", maxInNews+1)
	d, other := c.s.Deltas(c.job, 2, 2), c.s.Deltas(c.job, 2, 2)
	for step := 1; step <= 2; step++ {
		c.do("commit", func() error { return d.Commit(ctx, one, step, []byte("small"), step == 2) })
		c.do("commit large", func() error { return c.s.CommitDelta(ctx, two, step, []byte(large)) })
		c.do("wait", func() error { return d.Wait(ctx, step, still) })
		c.do("fetch", func() error { _, err := d.Fetch(ctx, step); return err })
		c.do("own", func() error { _, err := d.Own(ctx, step, 0); return err })
	}
	c.do("log", func() error { return other.ReadLog(ctx) })
	c.do("news", func() error { return other.ReadNews(ctx) })
	c.do("fetch again", func() error { _, err := other.Fetch(ctx, 1); return err })
	c.do("end", func() error { return c.s.EndMember(ctx, c.job, 2, 1) })
	c.do("drop", func() error { return c.s.DropDeltas(ctx, c.job, 2) })
}

func (c *script) stages() {
	g, within := errgroup.WithContext(ctx)
	idle := func() error { return within.Err() }
	values := make([]float32, pipelineBlock+7)
	for i := range 2 {
		p := c.s.Pipeline(Claim{ID: c.id(i), Fence: uint64(i + 1)}, Place{Round: 2, Stage: i, Stages: 2})
		g.Go(func() error {
			if _, err := p.Join(within, Joined{}, idle); err != nil {
				return err
			}
			if err := p.Check(within); err != nil {
				return err
			}
			send := func() error { return p.Send(within, i == 0, Values(values)) }
			receive := func() error { return p.Receive(within, i == 1, make(Values, len(values)), idle) }
			steps := []func() error{send, receive, func() error { return p.SendShared(within, values[:3]) }}
			if i == 1 {
				steps[0], steps[1] = receive, send
			}
			steps = append(steps, func() error { return p.ReceiveShared(within, make([]float32, 3), idle) })
			for _, step := range steps {
				if err := step(); err != nil {
					return err
				}
			}
			return p.End(within, idle)
		})
	}
	c.do("stages", g.Wait)
}

func (c *script) administration() {
	c.do("capacity", func() error { _, err := c.s.Capacity(ctx); return err })
	c.do("check", func() error { return c.s.Check(ctx, c.job) })
	c.do("user", func() error { return c.s.AddUser(ctx, "nth", "secret", "nth") })
}

// Any one command may get lost, or its answer: the caller learns of it or got all that it asked for, a sweep leaves
// nothing, and the same calls of another job succeed afterwards.
func TestTheNthCommandFails(t *testing.T) {
	at := redisServer(t)
	for name, calls := range map[string]func(*script){
		"updates": (*script).updates, "claims": (*script).claims, "states": (*script).states,
		"means": (*script).means, "joins": (*script).joins, "deltas": (*script).deltas,
		"stages": (*script).stages, "administration": (*script).administration,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, at, "nth-"+name)
			s.column = 4
			f := &nthFails{}
			s.client.AddHook(f)
			if s.client.large != s.client.UniversalClient {
				s.client.large.AddHook(f)
			}
			run := func(job string, nth int) *script {
				f.left.Store(int64(nth))
				c := &script{s: s, job: disdel.JobID(job)}
				calls(c)
				return c
			}
			const far = math.MaxInt32
			if c := run("job-0", far); c.err != nil {
				t.Fatal(c.err)
			}
			n, step := far-int(f.left.Load()), 1
			if name == "stages" { // stages that wait for each other learn of it after a while
				step = 4
			}
			failed := 0
			for nth := 1 + rand.IntN(step); nth <= n; nth += step {
				for _, f.done = range []bool{false, true} {
					c := run(fmt.Sprintf("job-%d-%t", nth, f.done), nth)
					f.left.Store(far)
					if c.err != nil {
						failed++
					}
					var ours *disdel.Error
					if c.err != nil && (!errors.Is(c.err, errNoAnswer.Err) || !errors.As(c.err, &ours)) {
						t.Errorf("command %d, done %t: %v does not say what failed", nth, f.done, c.err)
					}
					if _, err := s.Sweep(ctx, c.job); err != nil {
						t.Errorf("command %d, done %t: %v", nth, f.done, err)
					}
				}
			}
			for key := range s.all() {
				if !strings.Contains(key, "job-0") {
					t.Errorf("%s is left", key)
				}
			}
			if c := run("job-last", far); c.err != nil || failed < n/step {
				t.Errorf("afterwards: %v; %d of %d commands failed a call", c.err, failed, 2*n/step)
			}
		})
	}
}
