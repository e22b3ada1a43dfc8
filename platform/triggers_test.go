package platform

import (
	"encoding/json"
	"testing"
)

// A fired trigger invokes the actions of its active rules, and its record tells what became of each rule.
func TestTriggersInvokeTheActionsOfTheirRules(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/p", `{}`)
	must(t, p, "PUT", "_/actions/p/a", code("mirror", `"parameters":[{"key":"a","value":1}]`))
	must(t, p, "PUT", "_/actions/gone", code("mirror", ""))
	must(t, p, "PUT", "_/triggers/t", `{"parameters":[{"key":"t","value":1},{"key":"x","value":0}]}`)
	if got := must(t, p, "POST", "_/triggers/t", `{}`); got.status != 204 || got.body != "" {
		t.Errorf("without a rule: %d %s", got.status, got.body)
	}
	for name, action := range map[string]string{"r1": "p/a", "r2": "p/a", "r3": "gone"} {
		must(t, p, "PUT", "_/rules/"+name, `{"trigger":"/_/t","action":"/guest/`+action+`"}`)
	}
	must(t, p, "POST", "_/rules/r2", `{"status":"inactive"}`)
	must(t, p, "DELETE", "_/actions/gone", "")
	id := must(t, p, "POST", "_/triggers/t", `{"x":2}`).at("activationId").(string)
	rec := must(t, p, "GET", "_/activations/"+id, "")
	if rec.at("name") != "t" || rec.at("response.result.x") != 2.0 || rec.at("end") != nil || rec.at("duration") != nil {
		t.Errorf("%s", rec.body)
	}
	for i, want := range []outcome{
		{0, true, "", "", "guest/r1", "guest/p/a"},
		{1, false, "", "Rule 'guest/r2' is inactive, action 'guest/p/a' was not activated.", "guest/r2", "guest/p/a"},
		{1, false, "", errNoEntity.text, "guest/r3", "guest/gone"},
	} {
		var got outcome
		line, _ := rec.at([]string{"logs.0", "logs.1", "logs.2"}[i]).(string)
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if want.ActivationID = got.ActivationID; got != want || want.Success != (got.ActivationID != "") {
			t.Errorf("rule %d: %+v, want %+v", i, got, want)
		}
		if got.Success {
			given := await(t, p, got.ActivationID)["response"].(map[string]any)["result"].(map[string]any)
			delete(given, "__ow_headers")
			result, _ := json.Marshal(given)
			if string(result) != `{"a":1,"t":1,"x":2}` {
				t.Errorf("the action got %s", result)
			}
		}
	}
}

// A rule's status is kept when it changes, follows it to another trigger, and ends with its trigger.
func TestRulesFollowTheirTriggers(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/actions/a", code("mirror", ""))
	must(t, p, "PUT", "_/triggers/t1", `{}`)
	must(t, p, "PUT", "_/triggers/t2", `{}`)
	made := must(t, p, "PUT", "_/rules/r", `{"trigger":"/_/t1","action":"/_/a"}`)
	if made.at("status") != ruleActive || made.at("trigger.path") != "guest" || made.at("trigger.name") != "t1" ||
		made.at("action.name") != "a" {
		t.Errorf("%s", made.body)
	}
	status := func(want string) {
		t.Helper()
		if got := must(t, p, "GET", "_/rules/r", ""); got.at("status") != want {
			t.Errorf("%s, want %s", got.body, want)
		}
	}
	must(t, p, "POST", "_/rules/r", `{"status":"inactive"}`)
	status(ruleInactive)
	moved := must(t, p, "PUT", "_/rules/r?overwrite=true", `{"trigger":"/_/t2"}`)
	if moved.at("status") != ruleInactive || moved.at("version") != "0.0.2" || moved.at("action.name") != "a" {
		t.Errorf("%s", moved.body)
	}
	if got := must(t, p, "GET", "_/triggers/t1", ""); got.at("rules") != nil {
		t.Errorf("%s", got.body)
	}
	must(t, p, "POST", "_/rules/r", `{"status":"active"}`)
	status(ruleActive)
	if got := must(t, p, "PUT", "_/triggers/t2?overwrite=true", `{}`); got.at("rules.guest/r.status") != ruleActive {
		t.Errorf("an update of the trigger forgot its rule: %s", got.body)
	}
	must(t, p, "DELETE", "_/triggers/t2", "")
	status(ruleInactive)
	if got := ask(t, p, p.AuthKey(), "POST", "_/rules/r", `{"status":"active"}`); got.status != 404 ||
		got.text() != errRuleNoTrigger.text {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := must(t, p, "DELETE", "_/rules/r", ""); got.at("status") != ruleInactive {
		t.Errorf("%s", got.body)
	}
}

func TestDeletingAPackageByForceTakesItsActions(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/p", `{}`)
	must(t, p, "PUT", "_/actions/p/a", code("mirror", ""))
	must(t, p, "PUT", "_/actions/p/b", code("mirror", ""))
	if got := ask(t, p, p.AuthKey(), "DELETE", "_/packages/p", ""); got.text() != errPackageNotEmpty(2).text ||
		got.status != 409 {
		t.Errorf("%d %s", got.status, got.body)
	}
	must(t, p, "DELETE", "_/packages/p?force=true", "")
	if got := must(t, p, "GET", "_/actions", ""); got.body != "[]" {
		t.Errorf("%s", got.body)
	}
}
