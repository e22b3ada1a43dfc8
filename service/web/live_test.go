package web

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel/service"
)

// What is small is told a little later, together with what is not if that comes meanwhile; the rest is told at once.
func TestSmallEventsWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		pause := time.NewTimer(time.Hour)
		defer pause.Stop()
		for _, c := range []struct {
			first, then service.EventData
			want        time.Duration
		}{
			{service.Invoked{}, nil, smallWait},
			{service.Ended{}, service.Invoked{}, smallWait},
			{service.Ended{}, service.RoundEnded{}, 10 * time.Millisecond},
			{service.Forecast{}, service.Progress{}, 10 * time.Millisecond},
			{service.RoundEnded{}, nil, 0},
			{service.Progress{}, nil, 0},
		} {
			n := &news{changed: make(chan struct{}, 1), large: make(chan struct{}, 1)}
			n.add(service.Event{What: c.first})
			began := time.Now()
			if c.then != nil {
				go func() {
					time.Sleep(10 * time.Millisecond)
					n.add(service.Event{What: c.then})
				}()
			}
			<-n.changed
			if n.gather(pause, over); time.Since(began) != c.want {
				t.Errorf("%T, then %T: told after %v, want %v", c.first, c.then, time.Since(began), c.want)
			}
			synctest.Wait()
		}
		close(over)
		n := &news{changed: make(chan struct{}, 1), large: make(chan struct{}, 1)}
		n.add(service.Event{What: service.Ended{}})
		began := time.Now()
		if n.gather(pause, over); time.Since(began) != 0 {
			t.Error("the end of the job waits")
		}
	})
}
