package executor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
)

// Who waits for the next minute is known by name, also where OpenWhisk refused before the count was reached, and is
// known no longer once the minute has turned.
func TestQuotaNamesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second))) // in the middle of a minute
		var p pace
		p.know(disdel.PlatformLimits{PerMinute: 2})
		for _, id := range []string{"a", "b", "c"} {
			go func() {
				if err := p.request(context.Background(), waiter{"job", id}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		q := p.quota("job", time.Now())
		if !slices.Equal(q.Waiting, []string{"c"}) || q.Left != 0 || q.PerMinute != 2 || time.Until(q.Until) > time.Minute {
			t.Errorf("%+v", q)
		}
		if other := p.quota("other", time.Now()); len(other.Waiting) > 0 {
			t.Errorf("another job waits: %+v", other)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if q := p.quota("job", time.Now()); len(q.Waiting) > 0 || q.Left != 1 {
			t.Errorf("in the next minute: %+v", q)
		}
		p.refused(time.Now())
		if q := p.quota("job", time.Now()); q.Left != 0 || p.tryRequest(time.Now()) <= 0 {
			t.Errorf("after a refusal: %+v", q)
		}
		time.Sleep(time.Minute)
		if p.tryRequest(time.Now()) > 0 {
			t.Error("the refusal outlasts its minute")
		}
	})
}
