package deploy

import (
	"strings"
	"testing"
)

// Where down finds nothing of the manifest, it does not say that all is as the manifest has it.
func TestDownWithNothingToRemove(t *testing.T) {
	p := Plan{Host: "h", Package: "p", down: true}
	if got := p.Says(true); !strings.Contains(got, "is not at h") {
		t.Error(got)
	}
	p.Changes = []Change{{What: "action", Name: "p/x", Change: Other}, {What: "package", Name: "p", Change: Keep}}
	got := p.Says(true)
	if strings.Contains(got, "is as the manifest") || !strings.Contains(got, "1 action that the manifest does not name") {
		t.Error(got)
	}
}
