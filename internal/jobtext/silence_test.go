package jobtext

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/service"
)

// Waiting names the pool as a cause where it may be, and the age of what is known of it.
func TestNoSignTellsWhatIsKnownOfThePool(t *testing.T) {
	wait := controller.Waiting{
		Invocations: []disdel.Invocation{{Task: disdel.TaskTrain}}, For: 10 * time.Second, Pool: 512 * disdel.MB,
	}
	found := wait
	found.Found, found.FoundAt = 4*disdel.GB, time.Date(2026, 11, 14, 12, 0, 0, 0, time.Local)
	certain := wait
	certain.Pool = 0
	for _, c := range []struct {
		wait        controller.Waiting
		want, wants string
	}{
		{wait, "with less than 512 MB in its container pool", "--pool-memory"},
		{found, "doctor found a container pool of 4.00 GB on 2026-11-14, which may have shrunk", "less than 512 MB"},
	} {
		if text := silence(service.Waiting{Waiting: c.wait}); !strings.Contains(text, c.want) ||
			!strings.Contains(text, c.wants) {
			t.Errorf("%s", text)
		}
	}
	if text := silence(service.Waiting{Waiting: certain}); strings.Contains(text, "pool") {
		t.Errorf("%s", text)
	}
}
