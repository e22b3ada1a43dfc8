package platform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/wait"
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

// nested is a conductor that names itself until its parameters have an error, or an action and then itself.
func nested(params map[string]any) (int, string) {
	if params["error"] != nil && params["again"] == nil {
		return 200, `{"params":{"stopped":true}}`
	}
	next, _ := params["next"].(string)
	return 200, fmt.Sprintf(`{"action":%q,"params":{"next":%q,"again":%v},"state":{"next":%q,"again":%v}}`, next, next,
		params["again"] == true, next, params["again"] == true)
}

// runsOf counts the records of an action, and those of it that are its compositions'.
func runsOf(t *testing.T, p *Platform, name string) (runs, compositions int) {
	t.Helper()
	for skip := 0; ; skip += 100 {
		got := must(t, p, "GET", fmt.Sprintf("_/activations?name=%s&limit=100&skip=%d", name, skip), "")
		var list []map[string]any
		json.Unmarshal([]byte(got.body), &list)
		for _, rec := range list {
			if annotation(rec, "conductor") == true {
				compositions++
			} else {
				runs++
			}
		}
		if len(list) == 0 {
			return runs, compositions
		}
	}
}

// Nested compositions share one count, as in OpenWhisk: n components and 2n+1 turns of conductors in all. That holds if
// a conductor calls itself through a sequence, and if it goes on after an error.
func TestNestedConductorsShareOneCount(t *testing.T) {
	const most = 4
	for _, again := range []bool{false, true} {
		for _, next := range []string{"nested", "through", "two"} {
			t.Run(fmt.Sprintf("%s,%v", next, again), func(t *testing.T) {
				p := start(t, func(c *Config) { c.Limits.SequenceLength = most })
				must(t, p, "PUT", "_/actions/nested", code("nested", `"annotations":[{"key":"conductor","value":true}]`))
				must(t, p, "PUT", "_/actions/told", code("told", ""))
				must(t, p, "PUT", "_/actions/through", `{"exec":{"kind":"sequence","components":["/_/nested"]}}`)
				must(t, p, "PUT", "_/actions/two", `{"exec":{"kind":"sequence","components":["/_/told","/_/nested"]}}`)
				got := ask(t, p, p.AuthKey(), "POST", "_/actions/nested?blocking=true",
					fmt.Sprintf(`{"next":%q,"again":%v}`, next, again))
				if got.status != 200 && got.status != 502 {
					t.Errorf("%d %s", got.status, got.body)
				}
				turns, compositions := runsOf(t, p, "nested")
				if turns > 2*most+1 || compositions > 2*most+2 {
					t.Errorf("%d turns in %d compositions, want at most %d", turns, compositions, 2*most+1)
				}
				if refusal, _ := runsOf(t, p, "told"); refusal > most {
					t.Errorf("%d components, want at most %d", refusal, most)
				}
				if next == "nested" && again && turns != 2*most+1 {
					t.Errorf("%d turns, OpenWhisk has %d", turns, 2*most+1)
				}
			})
		}
	}
}

// A platform ends promptly while a composition that never ends by itself is under way.
func TestThePlatformEndsAmidAComposition(t *testing.T) {
	p := start(t, func(c *Config) { c.Limits.SequenceLength = 10_000 })
	must(t, p, "PUT", "_/actions/nested", code("nested", `"annotations":[{"key":"conductor","value":true}]`))
	must(t, p, "POST", "_/actions/nested", `{"next":"nested","again":true}`)
	wait.Until(t, "some turns", func() bool { turns, _ := runsOf(t, p, "nested"); return turns > 5 })
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Once a platform ends, sequences and compositions that are under way start nothing more.
func TestNothingMoreStartsOnceThePlatformEnds(t *testing.T) {
	p := start(t, func(*Config) {})
	must(t, p, "PUT", "_/actions/told", code("told", ""))
	must(t, p, "PUT", "_/actions/nested", code("nested", `"annotations":[{"key":"conductor","value":true}]`))
	must(t, p, "PUT", "_/actions/sequence", `{"exec":{"kind":"sequence","components":["/_/told","/_/told"]}}`)
	u, runs := p.userOf(p.AuthKey()), []*running{}
	for _, name := range []string{"nested", "sequence"} {
		err := p.store.view(func(t tx) error {
			path, err := parsePath(fullName(name), u.Name)
			if err != nil {
				return err
			}
			found, err := p.resolve(t, u, path)
			if err == nil {
				runs = append(runs, p.newRun(u, found, json.RawMessage(`{}`), ""))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	for _, run := range runs {
		p.runAction(run, 10)
		if len(run.record.Logs) > 0 || run.record.Response.Success {
			t.Errorf("%s: it ran %v, %+v", run.action.Name, run.record.Logs, run.record.Response)
		}
	}
}
