package jsonshape

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

type inner struct {
	Deep map[string]disdel.Millis `json:"deep,omitempty"`
}

type tree struct {
	inner
	At       time.Time       `json:"at"`
	Kind     disdel.Kind     `json:"kind"`
	Children []tree          `json:"children,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Bytes    []byte
	hidden   int
	Left     string `json:"-"`
}

func TestTheShapeIsThatOfTheTypeWithFieldsThatAreLeftOut(t *testing.T) {
	got, err := Of(Vocabulary(), tree{hidden: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := Shape{
		"$ object": true, "$.deep object": true, "$.deep.* number": true, "$.at string": true, "$.kind string": true,
		"$.children array": true, "$.children[] as $": true, "$.raw any": true, "$.Bytes string": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	list, err := Of(Vocabulary(), struct {
		First tree   `json:"first"`
		Trees []tree `json:"trees"`
	}{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Shape{"a": list, "b": got, "c": {}, "d": got}
	text := Print(all)
	if diff := cmp.Diff(all, Read(text)); diff != "" {
		t.Errorf("printed and read: %s\n%s", diff, text)
	}
	for _, line := range []string{"== d\n$ is b\n", "\n$.first is b\n", "\n$.trees[] is b\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestADocumentThatTheTypeCannotBeIsStrange(t *testing.T) {
	s, err := Of(Vocabulary(), func() ([]tree, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	for text, strange := range map[string][]string{
		`[{"at": "x", "deep": {"a": 1}, "children": [{"raw": {"a": [1]}, "children": null}]}]`: nil,
		`[{"deep": {"a": "1"}}]`:                       {"$[].deep.* string"},
		`[{"children": [{"children": [{"ata": 1}]}]}]`: {"$[].ata number"},
		`{}`: {"$ object"},
	} {
		var doc any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strange, s.Strange(doc)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

type opaque struct{}

func (opaque) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func TestATypeThatEncodesItselfNeedsASample(t *testing.T) {
	if s, err := Of(Vocabulary(), opaque{}); err == nil {
		t.Errorf("%v", s)
	}
}
