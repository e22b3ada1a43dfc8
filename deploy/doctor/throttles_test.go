package doctor

import (
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// The finding about quotas names the one that holds jobs up, what it means, and the admin's key for it.
func TestThrottlesNameTheQuotaThatHoldsJobsUp(t *testing.T) {
	for _, c := range []struct {
		perMinute, concurrent int
		state                 State
		means, key            string
	}{
		{0, 0, Unknown, "", ""},
		{enoughPerMinute, enoughAtOnce, Good, "", ""},
		{enoughPerMinute, 0, Good, "", ""},
		{enoughPerMinute, enoughAtOnce - 1, Note, "included: 4 at most", "whisk.limits.actionsInvokesConcurrent"},
		{0, 1, Note, "included: 1 at most", "whisk.limits.actionsInvokesConcurrent"},
		{enoughPerMinute - 1, enoughAtOnce, Note, "49 rounds fit into a minute", "whisk.limits.actionsInvokesPerminute"},
		{60, 1, Note, "10 rounds fit into a minute", "whisk.limits.actionsInvokesPerminute"},
	} {
		d := doctor{limits: disdel.PlatformLimits{PerMinute: c.perMinute, Concurrent: c.concurrent}}
		f := d.throttles()
		if f.State != c.state || !strings.Contains(f.Means, c.means) || f.Key != c.key {
			t.Errorf("%d a minute, %d at once: %+v", c.perMinute, c.concurrent, f)
		}
	}
}
