package platform

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
)

func TestMetricsCountWhatEnded(t *testing.T) {
	p := start(t, nil)
	newTestAction(t, p, "mirror", 60000, 128)
	newTestAction(t, p, "dev-error", 60000, 128)
	for _, args := range []string{`{}`, `{}`, `{"error":"x"}`} {
		ask(t, p, p.AuthKey(), "POST", "_/actions/mirror?blocking=true", args)
	}
	ask(t, p, p.AuthKey(), "POST", "_/actions/dev-error?blocking=true", `{}`)
	got := send(t, p, "GET", "/metrics", map[string]string{"Accept": "text/plain;version=0.0.4"})
	for _, line := range []string{
		`openwhisk_action_status_total{status="success"} 2`, `openwhisk_action_status_total{status="application_error"} 1`,
		`openwhisk_action_status_total{status="action_developer_error"} 1`, "openwhisk_action_activations_total 4",
		"openwhisk_action_coldStarts_total 2", `disdel_platform_containers{state="ready"} 1`, "disdel_platform_queued 0",
	} {
		if !strings.Contains(got.body, line+"\n") {
			t.Errorf("no %s in\n%s", line, got.body)
		}
	}
	if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// The API's description of itself is one that tools can read, and has every path.
func TestTheAPIDescribesItself(t *testing.T) {
	p := start(t, nil)
	got := ask(t, p, "", "GET", "/api/v1/api-docs", "")
	var doc openapi2.T
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil || got.status != 200 {
		t.Fatalf("%d %v", got.status, err)
	}
	v3, err := openapi2conv.ToV3(&doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := v3.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	item := doc.Paths["/namespaces/{ns}/actions/{pkg}/{name}"]
	if item == nil || item.Put == nil || len(item.Put.Parameters) != 3 ||
		doc.Paths["/namespaces/{ns}/activations"] == nil {
		t.Errorf("%s", got.body)
	}
}
