package aggregator

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Of several errors the first one is told that no other has caused: that of the smallest index, wherever it stands.
func TestTheFirstFaultIsTold(t *testing.T) {
	one, two, stopped := errors.New("one"), errors.New("two"), context.Canceled
	for what, c := range map[string]struct {
		faults []error
		at     []int
		want   error
	}{
		"the smaller index, first":   {[]error{one, two}, []int{3, 5}, one},
		"the smaller index, last":    {[]error{one, two}, []int{5, 3}, two},
		"what stopped the others":    {[]error{stopped, two}, []int{3, 5}, two},
		"not what was stopped later": {[]error{one, stopped}, []int{5, 3}, one},
		"no error in between":        {[]error{nil, two, nil}, []int{0, 5, 0}, two},
		"none at all":                {[]error{nil, nil}, []int{0, 0}, nil},
	} {
		if got := firstFault(t.Context(), c.faults, c.at); got != c.want {
			t.Errorf("%s: %v, not %v", what, got, c.want)
		}
	}
}

// However many connections were in use at once, a store at rest keeps those that reads at once and a heartbeat need.
func TestIdleConnectionsAreFew(t *testing.T) {
	s, err := Open(t.Context(), disdel.Store{URLs: []string{plainRedis(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := s.servers[0].UniversalClient.(*redis.Client)
	var used []*redis.Conn
	for range idleConnections + 3 { // go-redis has at most ten a core
		c := client.Conn()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		used = append(used, c)
	}
	for _, c := range used {
		c.Close()
	}
	if got := client.PoolStats(); got.IdleConns > idleConnections || got.IdleConns == 0 {
		t.Errorf("%d connections wait of %d", got.IdleConns, len(used))
	}
}
