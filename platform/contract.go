package platform

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// initBody is the body of /init. Where several activations may share the container, it says how many, and it asks the
// program to print no sentinels: OpenWhisk does neither, and no runtime of its own minds.
func (p *Platform) initBody(run *running, room int) any {
	a := run.action
	value := map[string]any{
		"name": a.Name, "main": mainOf(a), "binary": a.Exec.Binary, "env": p.initEnv(run), "sentinels": false,
	}
	if a.Exec.Code != "" { // an image may bring its own
		value["code"] = a.Exec.Code
	}
	if room > 1 {
		value["concurrency"] = room
	}
	return map[string]any{"value": value}
}

// endsSilently tells whether a program's answer to /init says that it prints no sentinels. What it has printed when its
// answer to /run comes is then an activation's log, and two lines less are written and read for each.
func endsSilently(answer []byte) bool {
	var said struct{ Sentinels *bool }
	return json.Unmarshal(answer, &said) == nil && said.Sentinels != nil && !*said.Sentinels
}

// initEnv is the environment that /init hands over, as the invoker fills it.
func (p *Platform) initEnv(run *running) map[string]string {
	a := run.action
	env := map[string]string{
		"__OW_NAMESPACE": run.user.Name, "__OW_ACTION_NAME": "/" + a.path(), "__OW_ACTION_VERSION": a.Version,
		"__OW_ACTIVATION_ID":  run.id,
		"__OW_TRANSACTION_ID": run.id, "__OW_DEADLINE": deadlineText(time.Duration(a.Limits.Timeout) * time.Millisecond),
	}
	for _, v := range a.Parameters {
		if v.Init {
			env[v.Key] = environmentText(v.Value)
		}
	}
	if wantsKey(a) {
		env["__OW_API_KEY"] = run.user.Key
	}
	return env
}

// environmentText is a parameter's value in the environment: a string as it is, anything else as JSON.
func environmentText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// wantsKey tells whether the action asked for the namespace's key by its annotation: any JSON that is not false, null,
// zero or empty.
func wantsKey(a *action) bool {
	for _, v := range a.Annotations {
		if v.Key == "provide-api-key" {
			return !slices.Contains([]string{"", "false", "null", "0", `""`}, string(v.Value))
		}
	}
	return false
}

func mainOf(a *action) string {
	if a.Exec.Main == "" {
		return "main"
	}
	return a.Exec.Main
}

// runBody is the body of /run. Parameters, which are JSON, are put into it as they are.
func (p *Platform) runBody(run *running, limit time.Duration) []byte {
	a := run.action
	out := make([]byte, 0, len(run.params)+512)
	out = append(append(out, `{"value":`...), run.params...)
	for _, field := range [...][2]string{
		{"namespace", run.user.Name},
		{"action_name", "/" + a.path()},
		{"action_version", a.Version},
		{"activation_id", run.id},
		{"transaction_id", run.id},
		{"deadline", deadlineText(limit)},
	} {
		out = appendField(out, field[0], field[1])
	}
	if wantsKey(a) {
		out = appendField(out, "api_key", run.user.Key)
	}
	return append(out, '}')
}

// appendField appends a field of an object that has others before it.
func appendField(to []byte, name, value string) []byte {
	text, _ := json.Marshal(value) // a text
	to = append(append(append(to, `,"`...), name...), `":`...)
	return append(to, text...)
}

// deadlineText is epoch milliseconds as a string: what the invoker sends, whatever the documents say.
func deadlineText(limit time.Duration) string {
	return strconv.FormatInt(time.Now().Add(limit).UnixMilli(), 10)
}
