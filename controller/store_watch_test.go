package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// A job whose store is gone ends for that, says which store, what was tried and for how long, and how it goes on. A
// store that is away for a while, or a job that waits for as long as it takes, goes on.
func TestAStoreThatIsGoneIsTheCause(t *testing.T) {
	refused := func(context.Context) error {
		return &disdel.Error{Kind: disdel.Unavailable, Msg: "Redis at 127.0.0.1:1", Err: errors.New("connection refused")}
	}
	for name, c := range map[string]struct {
		check  func(ctx context.Context) error
		within time.Duration // 0: the job passes
		kind   disdel.Kind
		says   []string
		waits  bool
	}{
		"refused": {refused, 30 * time.Second, disdel.Unavailable, []string{
			"Redis at 127.0.0.1:1 did not work in", "over 20s", "connection refused",
		}, false},
		"black-holed": {func(ctx context.Context) error {
			<-ctx.Done()
			return &disdel.Error{Kind: disdel.Unavailable, Msg: "Redis at 127.0.0.1:1", Err: ctx.Err()}
		}, 40 * time.Second, disdel.Unavailable, []string{"Redis at 127.0.0.1:1 did not work in"}, false},
		"another password": {func(context.Context) error {
			return &disdel.Error{Kind: disdel.Denied, Msg: "Redis at 127.0.0.1:1", Hint: "check the user"}
		}, 15 * time.Second, disdel.Denied, []string{"did not work in 3 checks"}, false},
		"for a while": {func() func(context.Context) error {
			n := 0
			return func(ctx context.Context) error {
				if n++; n > 2 && n < 8 {
					return refused(ctx)
				}
				return nil
			}
		}(), 0, 0, nil, false},
		"waited for": {refused, 0, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, s *surroundings) {
				s.check, s.end = c.check, lasting(20*time.Second)
				spec := runSpec(2, 4)
				if c.waits {
					spec.Job.Distribution.Missing.Policy = disdel.MissingWait
				}
				began := time.Now()
				rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
				took := time.Since(began)
				if err != nil || (rec.Status == disdel.StatusSucceeded) != (c.within == 0) {
					t.Fatalf("%v after %v: %v, %v", rec.Status, took, rec.Failure, err)
				}
				if c.within == 0 {
					return
				}
				f := rec.Failure
				if took > c.within || f.Kind != c.kind || f.Code != disdel.CodeStoreGone ||
					!strings.Contains(f.Hint, "; then disdel resume job-1") {
					t.Errorf("after %v: %+v", took, f)
				}
				for _, want := range c.says {
					if !strings.Contains(f.Error(), want) {
						t.Errorf("%q lacks %q", f.Error(), want)
					}
				}
			})
		})
	}
}
