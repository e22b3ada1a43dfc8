package deploy

import (
	"strings"
	"testing"
)

// If down finds nothing of the manifest, it does not say that the package is up to date.
func TestDownWithNothingToRemove(t *testing.T) {
	p := Plan{Host: "h", Package: "p", down: true}
	if got := p.Summary(true); !strings.Contains(got, "does not exist at h") {
		t.Error(got)
	}
	p.Changes = []Change{{What: "action", Name: "p/x", Change: Unmanaged}, {What: "package", Name: "p", Change: Keep}}
	got := p.Summary(true)
	if strings.Contains(got, "is up to date") || !strings.Contains(got, "1 action of others") {
		t.Error(got)
	}
}
