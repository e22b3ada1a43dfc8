package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel/deploy"
	"github.com/disdel/disdel/internal/test/deploytest"
)

// The package has the manifest's version, as OpenWhisk writes it. A version that differs is told and mended; one that
// the manifest does not name is the platform's.
func TestThePackageHasTheManifestsVersion(t *testing.T) {
	p := deploytest.Platform(t, nil)
	c, before := cluster(t, p, p.AuthKey()), ""
	for _, step := range []struct{ said, there string }{
		{"", ""}, {"1.0.0", "1.0.0"}, {"1.0", "1.0.0"}, {"2", "2.0.0"}, {"1.2.3", "1.2.3"}, {"0.4", "0.4.0"}, {"", "0.4.0"},
	} {
		text := strings.Replace(string(deploy.StandardManifest()), "version: 1.0.0", fmt.Sprintf("version: %q", step.said), 1)
		wanted, err := deploy.Read("manifest.yaml", []byte(text), deploy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := c.Up(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		var fields []deploy.Field
		if before != "" && step.there != before {
			fields = []deploy.Field{{Name: "version", From: before, To: step.there}}
		}
		if diff := cmp.Diff(fields, plan.Changes[0].Fields); diff != "" {
			t.Errorf("version %q: (-want +got)\n%s", step.said, diff)
		}
		is, err := c.Executor.Deployment(t.Context(), "disdel")
		if err != nil || step.there != "" && is.Version != step.there {
			t.Errorf("version %q: there is %q, %v", step.said, is.Version, err)
		}
		if plan, err = c.Preview(t.Context(), wanted); err != nil || plan.Changed() != 0 {
			t.Errorf("version %q differs after up: %+v, %v", step.said, plan.Changes, err)
		}
		before = is.Version
	}
}

func TestAVersionThatOpenWhiskRefuses(t *testing.T) {
	for _, version := range []string{"one", "1.x", "1.2.3.4", "0.0.0", "-1", "1.", "+1", "99999999999"} {
		text := strings.Replace(string(deploy.StandardManifest()), "version: 1.0.0", fmt.Sprintf("version: %q", version), 1)
		_, err := deploy.Read("manifest.yaml", []byte(text), deploy.Options{})
		if err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("%q: %v", version, err)
		}
	}
}
