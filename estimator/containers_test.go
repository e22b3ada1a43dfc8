package estimator

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// bare is an estimate of terms alone, without a margin.
func bare(e disdel.Estimate) disdel.Estimate {
	e = sum(e)
	e.Total = e.Likely
	return e
}

// III-B.1: c_d starts at 2; while m_e > M it grows by ceil((m_e - M) / M). With 10 MB fixed, 90 MB of data and M = 20
// MB: 2 containers need 55 MB: add ceil(35/20) = 2; 4 need 32.5 MB: add 1; 5 need 28 MB: add 1; then 25 MB: 1, 22.86:
// 1, 21.25: 1, 20: fits at 9.
func TestPaperContainerRule(t *testing.T) {
	var asked []int
	n, e, steps, err := ContainerRule(20*disdel.MB, 1000, func(c int) disdel.Estimate {
		asked = append(asked, c)
		return bare(disdel.Estimate{Package: 10 * disdel.MB, Shard: 90 * disdel.MB / disdel.Bytes(c)})
	})
	if err != nil || n != 9 || e.Total != 20*disdel.MB || len(steps) != len(asked) {
		t.Errorf("%d containers of %v after %v, %v", n, e.Total, asked, err)
	}
	if want := []int{2, 4, 5, 6, 7, 8, 9}; strings.Trim(strings.Join(strings.Fields(sprint(asked)), " "),
		"[]") != strings.Trim(sprint(want), "[]") {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}

func sprint(v []int) string {
	var b strings.Builder
	for i, x := range v {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(rune('0' + x)))
	}
	return b.String()
}

// Only the shard shrinks: a model that alone is above the limit never fits, and the rule must say so, not loop.
func TestWhatNeverFitsIsSaidAtOnce(t *testing.T) {
	calls := 0
	_, _, _, err := ContainerRule(20*disdel.MB, 1<<30, func(int) disdel.Estimate {
		calls++
		return bare(disdel.Estimate{Package: 21 * disdel.MB, Shard: disdel.MB})
	})
	if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "no number of workers makes it fit") ||
		calls != 1 {
		t.Errorf("%v after %d estimates", err, calls)
	}
	_, _, _, err = ContainerRule(20*disdel.MB, 3, func(c int) disdel.Estimate {
		return bare(disdel.Estimate{Package: 10 * disdel.MB, Shard: 90 * disdel.MB / disdel.Bytes(c)})
	})
	if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "even with 3 workers") {
		t.Errorf("too few rows: %v", err)
	}
}

// The rule ends, with a plan that fits or with OverLimit.
func TestContainerRuleAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := disdel.Bytes(rapid.Int64Range(1, 1000).Draw(t, "limit"))
		fixed := disdel.Bytes(rapid.Int64Range(0, 1000).Draw(t, "fixed"))
		data := disdel.Bytes(rapid.Int64Range(0, 1_000_000).Draw(t, "data"))
		most := rapid.IntRange(1, 5000).Draw(t, "most")
		n, e, _, err := ContainerRule(limit, most, func(c int) disdel.Estimate {
			return bare(disdel.Estimate{Package: fixed, Shard: (data + disdel.Bytes(c) - 1) / disdel.Bytes(c)})
		})
		if err == nil && (e.Total > limit || n > most || n < 1) {
			t.Fatalf("%d of at most %d containers of %v, limit %v", n, most, e.Total, limit)
		}
		if err != nil && !errors.Is(err, disdel.OverLimit) {
			t.Fatal(err)
		}
	})
}
