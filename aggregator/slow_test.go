package aggregator

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// slowly stands before a server and lets rate bytes a second through in each direction, over all connections together.
func slowly(t *testing.T, server string, rate float64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	pump := func(to, from net.Conn, turn *sync.Mutex) {
		defer to.Close()
		buf := make([]byte, 16<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			turn.Lock()
			time.Sleep(time.Duration(float64(n) / rate * float64(time.Second)))
			turn.Unlock()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	var up, down sync.Mutex
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			all.Go(func() { pump(s, c, &up) })
			all.Go(func() { pump(c, s, &down) })
		}
	})
	return l.Addr().String()
}

// Columns that are long on their way are not given up and sent anew while they still move: nothing would ever arrive.
func TestLargeValuesTravelOverSlowLines(t *testing.T) {
	at := embedded(t)
	opt, err := redis.ParseURL(at.store.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	at.store.URLs = []string{"redis://:" + opt.Password + "@" + slowly(t, opt.Addr, 4e6) + "?max_retries=2"}
	s := enter(t, at, "slow")
	for _, c := range s.servers { // as short beside a column's second as 30 s beside minutes
		c.UniversalClient = c.UniversalClient.(*redis.Client).WithTimeout(200 * time.Millisecond)
	}
	w := disdel.Weights{{Name: "fc.weight", Shape: []int{3 * columnValues}, Data: make([]float32, 3*columnValues)}}
	w[0].Data[5] = 1
	if err := s.PutReference(ctx, "job-1", 0, w); err != nil {
		t.Fatal(err)
	}
	got, err := s.Reference(ctx, "job-1", 0, w)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		t.Errorf("it came back otherwise:\n%.300s", diff)
	}
}
