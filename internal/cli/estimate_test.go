package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel/scheduler"
)

// The whole grid can be named in one flag or in several, in any order.
func TestGridsAreRead(t *testing.T) {
	for in, want := range map[string]scheduler.Grid{
		"workers=1..3":               {Workers: []int{1, 2, 3}},
		"workers=4,1..2,batch=64,32": {Workers: []int{1, 2, 4}, Batches: []int{32, 64}},
		"batch=8 workers=2,2":        {Workers: []int{2}, Batches: []int{8}},
		" workers = 1 , 2":           {Workers: []int{1, 2}},
	} {
		var r questionReader
		values := []string{in}
		if !strings.HasPrefix(in, " ") {
			values = strings.Fields(in)
		}
		r.whatIf(values)
		if diff := cmp.Diff(want, *r.Grid); diff != "" || r.faults != nil {
			t.Errorf("%s: %v (-want +got):\n%s", in, r.faults, diff)
		}
	}
	for _, in := range []string{
		"", "workers", "workers=", "workers=-1", "workers=1..", "workers=1...3", "workers=1.5",
		"batch=9999999", "batch=1..2001",
	} {
		var r questionReader
		if r.whatIf([]string{in}); len(r.faults) != 1 || r.faults[0].Hint == "" &&
			!strings.Contains(r.faults[0].Msg, "at most") {
			t.Errorf("%q: %v", in, r.faults)
		}
	}
}
