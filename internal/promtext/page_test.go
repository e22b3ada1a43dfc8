package promtext

import "testing"

func TestPage(t *testing.T) {
	var p Page
	p.Family("jobs", "gauge", "Jobs by state.")
	p.Sample("jobs", 2, "state", "running", "tenant", "a\"b\\c\nd")
	p.Sample("up", 0.5)
	h := NewHistogram(0.1, 1)
	for _, v := range []float64{0.1, 0.2, 5} {
		h.Add(v)
	}
	p.Histogram("wait", h.Clone(), "tenant", "x")
	h.Add(1)
	const want = `# HELP jobs Jobs by state.
# TYPE jobs gauge
jobs{state="running",tenant="a\"b\\c\nd"} 2
up 0.5
wait_bucket{tenant="x",le="0.1"} 1
wait_bucket{tenant="x",le="1"} 2
wait_bucket{tenant="x",le="+Inf"} 3
wait_sum{tenant="x"} 5.3
wait_count{tenant="x"} 3
`
	if got := string(p.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
