package secrets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/secrets"
)

const params = `{"round":3,"store":{"url":"redis://alice:CANARY@host:6379/0","prefix":"disdel"}}`

// Sealed parameters show nothing of the password, and are what they were to whoever has the key of the action.
func TestSealedParametersAreOpenedByTheirAction(t *testing.T) {
	key := secrets.NewKey()
	own, ok := secrets.FromCode(key.Of("pkg/train").Code())
	if !ok {
		t.Fatal("the code has no key")
	}
	sealed, err := key.Of("pkg/train").Seal(json.RawMessage(params))
	if err != nil || strings.Contains(string(sealed), "CANARY") || strings.Contains(string(sealed), "alice") ||
		!strings.Contains(string(sealed), `"round":3`) {
		t.Fatalf("%s, %v", sealed, err)
	}
	opened, err := own.Open(sealed)
	var was, is any
	if json.Unmarshal([]byte(params), &was) != nil || json.Unmarshal(opened, &is) != nil || err != nil ||
		fmt.Sprint(was) != fmt.Sprint(is) {
		t.Errorf("%s, %v", opened, err)
	}
	again, _ := key.Of("pkg/train").Seal(json.RawMessage(params)) //nolint:errcheck // as above
	if string(again) == string(sealed) {
		t.Error("the same text is sealed in the same way twice")
	}
}

// Another action's key, a changed text and a text that is cut short open nothing.
func TestNobodyElseOpensThem(t *testing.T) {
	key := secrets.NewKey()
	sealed, err := key.Of("pkg/train").Seal(json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	var at map[string]map[string][]byte
	text := strings.Replace(string(sealed), `"round":3,`, "", 1)
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		t.Fatal(err)
	}
	whole := at["store"]["sealed"]
	with := func(b []byte) json.RawMessage {
		out, err := json.Marshal(map[string]any{"store": map[string]any{"sealed": b}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	bent := append([]byte(nil), whole...)
	bent[len(bent)-1] ^= 1
	for name, c := range map[string]struct {
		key    secrets.Key
		params json.RawMessage
	}{
		"another action":  {key.Of("pkg/aggregate"), sealed},
		"another program": {secrets.NewKey().Of("pkg/train"), sealed},
		"changed":         {key.Of("pkg/train"), with(bent)},
		"cut short":       {key.Of("pkg/train"), with(whole[:5])},
		"empty":           {key.Of("pkg/train"), with([]byte{})},
	} {
		if got, err := c.key.Open(c.params); !errors.Is(err, disdel.Denied) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// What is not sealed, or has no password, stays as it is.
func TestWhatIsNotSealedStays(t *testing.T) {
	key := secrets.NewKey()
	for _, text := range []string{params, `{"probe":true}`, `[1]`, `7`, ``} {
		if got, err := key.Open(json.RawMessage(text)); err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{`{"probe":true}`, `[1]`, ``} {
		if got, err := key.Seal(json.RawMessage(text)); err != nil || string(got) != text {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	other := "disdel:" + strings.Repeat("x", 64)
	for _, code := range []string{"", "disdel", "disdel:", "disdel:00", key.Code() + "00", other} {
		if _, ok := secrets.FromCode(code); ok {
			t.Errorf("%q is a key", code)
		}
	}
}

func ExampleKey() {
	key := secrets.NewKey().Of("disdel-job-1/train")
	sealed, err := key.Seal(json.RawMessage(`{"store":{"url":"redis://:password@host:6379/0"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(string(sealed), "password"))
	own, _ := secrets.FromCode(key.Code()) // in the action's container
	opened, err := own.Open(sealed)
	fmt.Println(string(opened), err)
	// Output:
	// false
	// {"store":{"url":"redis://:password@host:6379/0"}} <nil>
}
