package transcripts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// firstInvoked is the first exchange that invokes what none of them made: other requests had, before they were
// recorded.
const firstInvoked = "run apperr"

// ready is an action that is invoked and not made by any exchange.
type ready struct{ name, code, more string }

// returns is an action that returns a value.
func returns(name, value string) ready { return ready{name, "def main(a): return " + value, ""} }

// environment is an action that tells the variables that OpenWhisk gave it.
const environment = `import os
def main(a):
    set = ('__OW_ACTIVATION_ID', '__OW_DEADLINE', '__OW_TRANSACTION_ID')
    return {k: '<set>' if k in set else v for k, v in os.environ.items()
            if k.startswith('__OW_') and k != '__OW_ALLOW_CONCURRENT'}`

// conductor runs s1, and ends with what it got.
const conductor = `def main(a):
    n = a.get('$step', 0)
    if n == 0: return {'action': '/_/s1', 'params': {'v': 1}, 'state': {'$step': 1}}
    return {'params': {'done': a}}`

var invoked = []ready{
	returns("apperr", `{'error':'my error','other':1}`),
	returns("apperr_obj", `{'error': {'code': 7}}`),
	{"raises", "def main(a): raise ValueError('boom')", ""},
	{"syntax", "def main(a: return", ""},
	returns("notdict", `'text'`),
	returns("retlist", `[1, {'a': 2}]`),
	returns("retnone", `None`),
	{"exits", "import os\ndef main(a): os._exit(3)", ""},
	{"initexits", "import os\nos._exit(3)", ""},
	{"timesout", "import time\ndef main(a): time.sleep(5)", `,"limits":{"timeout":1500}`},
	{"inittimesout", "import time\ntime.sleep(5)", `,"limits":{"timeout":1500}`},
	{"oom", "def main(a): return {'n': len(bytearray(1 << 30))}", `,"limits":{"memory":128}`},
	{"oominit", "x = bytearray(1 << 30)", `,"limits":{"memory":128}`},
	returns("bigresult", `{'x': 'x' * (1 << 20)}`),
	{"biglog", "def main(a):\n    for i in range(2000): print('x' * 1000)\n    return {}", `,"limits":{"logs":1}`},
	{"nologs", "def main(a):\n    print('unheard')\n    return {}", `,"limits":{"logs":0}`},
	{"unicode", "def main(a):\n    print('log é 你')\n    return {'u': a['u'] + 'é'}", ""},
	{"env", environment, `,"annotations":[{"key":"provide-api-key","value":true}]`},
	{"envnokey", environment, ""},
	returns("numbers", `a`),
	{"s1", "def main(a):\n    a['s1'] = 1\n    return a", ""},
	{"s2", "def main(a):\n    a['s2'] = 1\n    return a", ""},
	{"serr", "def main(a): return {'error': 'seq'}", ""},
	{"cond", conductor, `,"annotations":[{"key":"conductor","value":true}]`},
}

// prepare makes the actions that exchanges invoke and do not make.
func (r *Replayer) prepare(ctx context.Context) error {
	for _, a := range invoked {
		exec, err := json.Marshal(map[string]any{"exec": map[string]string{"kind": "python:3", "code": a.code}})
		if err != nil {
			return err
		}
		got, err := r.send(ctx, &Exchange{
			Method: http.MethodPut, Path: "/api/v1/namespaces/_/actions/" + a.name, Key: "guest",
			Headers: map[string]string{"Content-Type": "application/json"},
			Body:    strings.TrimSuffix(string(exec), "}") + a.more + "}",
		})
		if err == nil && got.status != http.StatusOK {
			err = fmt.Errorf("make %s: %d %s", a.name, got.status, got.body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
