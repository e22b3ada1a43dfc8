package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const code = `package small

import "errors"

func Half(n int) (int, error) {
	err := errors.New("odd")
	if n%2 != 0 {
		return 0, err
	}
	return n / 2, nil
}
`

// Every kind of change is made, where it is meant.
func TestMutants(t *testing.T) {
	found, err := mutants("small/small.go", []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range found {
		all = append(all, m.String())
		if got := string(m.apply([]byte(code))); !strings.Contains(got, m.new) || got == code {
			t.Errorf("%s gives\n%s", m, got)
		}
	}
	want := `small/small.go:7: n%2 != 0 -> !(n%2 != 0)
small/small.go:7: != -> ==
small/small.go:8: err -> nil
small/small.go:10: / -> *`
	if got := strings.Join(all, "\n"); got != want {
		t.Errorf("found\n%s\nnot\n%s", got, want)
	}
}

// A change that a test fails on is noticed, others survive or do not compile; and the file stays as it was.
func TestASurvivorIsToldFromANoticedChange(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module small.test\n\ngo 1.26\n", "small/small.go": code,
		"small/small_test.go": `package small

import "testing"

func TestHalf(t *testing.T) {
	if n, err := Half(4); n != 2 || err != nil {
		t.Fatal(n, err)
	}
}
`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := candidates(root, []string{"small"})
	if err != nil {
		t.Fatal(err)
	}
	// the third one leaves err unused; nothing tests an odd number, so only a change of even ones is noticed
	for i, want := range []result{noticed, noticed, invalid, noticed} {
		if got, err := test(root, t.TempDir(), all[i], time.Minute); got != want || err != nil {
			t.Errorf("%s: %v, %v, not %v", all[i], got, err, want)
		}
	}
	at := strings.Index(code, "odd")
	m := mutant{file: "small/small.go", start: at, end: at + len("odd"), new: "even"}
	if got, err := test(root, t.TempDir(), m, time.Minute); got != survived || err != nil {
		t.Errorf("%s: %v, %v", m, got, err)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "small/small.go")); string(text) != code {
		t.Error("the file was changed")
	}
}
