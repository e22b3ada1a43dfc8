package aggregator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/faults"
)

// Columns that are long on their way are not given up and sent anew while they still move: nothing would ever arrive.
func TestLargeValuesTravelOverSlowLines(t *testing.T) {
	at := embedded(t)
	opt, err := redis.ParseURL(at.store.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	line := faults.Line{Rate: 4e6}
	// A busy machine may hold up a part for longer than the timeout; a whole column is over it in every try.
	at.store.URLs = []string{"redis://:" + opt.Password + "@" + line.To(t, opt.Addr, nil) + "?max_retries=10"}
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
