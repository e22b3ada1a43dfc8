package platform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// conduct is what a conductor of three steps says: the second names what is no action, the third what is not there.
func conduct(params map[string]any) (int, string) {
	seen, _ := json.Marshal(params)
	switch params["$step"] {
	case nil:
		return 200, `{"action":"/_/told","params":{"n":1},"state":{"$step":1}}`
	case 1.0:
		return 200, fmt.Sprintf(`{"action":"/missing","params":{},"state":{"$step":2,"seen":%s}}`, seen)
	case 2.0:
		return 200, fmt.Sprintf(`{"action":"missing","params":{},"state":{"$step":3,"seen":%s}}`, seen)
	default:
		return 200, fmt.Sprintf(`{"params":{"ended":%s}}`, seen)
	}
}

// says is a container's action that answers the same each time.
func says(answer string) func(map[string]any) (int, string) {
	return func(map[string]any) (int, string) { return 200, answer }
}

func toldOf(params map[string]any) (int, string) {
	seen, _ := json.Marshal(params)
	return 200, `{"told":` + string(seen) + `}`
}

// A conductor says what comes next, gets each result with its state, handles what cannot be run, and ends with its
// params.
func TestConductorsRunCompositions(t *testing.T) {
	p := start(t, func(c *Config) { c.Limits.SequenceLength = 3 })
	for _, name := range []string{"conduct-two", "conduct-for-ever", "conduct-value", "conduct-error", "told"} {
		annotations := ""
		if strings.HasPrefix(name, "conduct") {
			annotations = `"annotations":[{"key":"conductor","value":true}]`
		}
		must(t, p, "PUT", "_/actions/"+name, code(name, annotations))
	}
	got := must(t, p, "POST", "_/actions/conduct-two?blocking=true", `{"first":true}`)
	result, _ := json.Marshal(got.at("response.result"))
	for _, want := range []string{
		`"$step":3`, `Failed to parse action name from json value \"/missing\" during composition.`, `"told":{"n":1}`,
		`Failed to resolve action with name 'guest/missing' during composition.`,
	} {
		if !strings.Contains(string(result), want) {
			t.Errorf("%s, want %s in it", result, want)
		}
	}
	if got.noted("kind") != "sequence" || got.noted("conductor") != true || got.noted("topmost") != true {
		t.Errorf("annotations of %s", got.body)
	}
	ids, _ := got.at("logs").([]any)
	if len(ids) != 5 { // four turns and one component
		t.Fatalf("logs %v", ids)
	}
	for i, id := range ids {
		rec := must(t, p, "GET", fmt.Sprintf("_/activations/%v", id), "")
		name := []string{"conduct-two", "told", "conduct-two", "conduct-two", "conduct-two"}[i]
		if rec.at("name") != name || rec.at("cause") != got.at("activationId") || rec.noted("causedBy") != "sequence" {
			t.Errorf("part %d is %s", i, rec.body)
		}
	}
	for name, want := range map[string]string{
		"conduct-value": `{"value":7}`, "conduct-error": `{"error":"no"}`,
		"conduct-for-ever": `{"error":"Too many actions in the composition."}`,
	} {
		r := ask(t, p, p.AuthKey(), "POST", "_/actions/"+name+"?blocking=true&result=true", "{}")
		if r.body != want || slices.Contains([]string{"conduct-error", "conduct-for-ever"}, name) != (r.status == 502) {
			t.Errorf("%s: %d %s, want %s", name, r.status, r.body, want)
		}
	}
}
