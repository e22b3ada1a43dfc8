package platform

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/disdel/disdel"
)

// sequenceKind is the kind of actions that are lists of actions.
const sequenceKind = "sequence"

type execSpec struct {
	Kind       string   `json:"kind"`
	Code       string   `json:"code,omitempty"`
	Main       string   `json:"main,omitempty"`
	Image      string   `json:"image,omitempty"`
	Binary     bool     `json:"binary"`
	Components []string `json:"components,omitempty"` // of a sequence: /ns/pkg/action

	coded bool // a request has the field code, which may be empty
	bare  bool // an answer is to have no code
}

// MarshalJSON leaves binary out of sequences, which have no code (OpenWhisk's SequenceExec). A kind's action always has
// code, be it empty; an image may have none.
func (e execSpec) MarshalJSON() ([]byte, error) {
	type plain execSpec
	switch {
	case e.Kind != sequenceKind && (e.Kind == blackbox || e.bare || e.Code != ""):
		return json.Marshal(plain(e))
	case e.Kind != sequenceKind:
		return json.Marshal(struct {
			plain
			Code string `json:"code"`
		}{plain: plain(e)})
	}
	return json.Marshal(struct {
		Kind       string   `json:"kind"`
		Components []string `json:"components"`
	}{e.Kind, e.Components})
}

// execPut is what a request says that an action shall run.
type execPut struct{ execSpec }

// UnmarshalJSON checks the fields that each kind needs, in OpenWhisk's order and words.
func (e *execPut) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return wrong(textNotAnObject)
	}
	if json.Unmarshal(fields["kind"], &e.Kind) != nil || e.Kind == "" {
		return wrong("'kind' must be a string defined in 'exec'")
	}
	e.Kind = strings.ToLower(strings.TrimSpace(e.Kind))
	switch e.Kind {
	case sequenceKind:
		if json.Unmarshal(fields["components"], &e.Components) != nil {
			return wrong("'components' must be defined for sequence kind")
		}
		return nil
	case blackbox:
		if json.Unmarshal(fields["image"], &e.Image) != nil || e.Image == "" {
			return wrong("'image' must be a string defined in 'exec' for 'blackbox' actions")
		}
		if !imageName().MatchString(e.Image) {
			return wrong("could not parse image name")
		}
	default:
		json.Unmarshal(fields["image"], &e.Image) //nolint:errcheck // of no use for a kind
	}
	if code, ok := fields["code"]; ok {
		if json.Unmarshal(code, &e.Code) != nil {
			return wrong("Could not deserialize as attachment record: " + string(code))
		}
		e.coded = true
	}
	json.Unmarshal(fields["main"], &e.Main) //nolint:errcheck // OpenWhisk takes no other type for one either
	return nil
}

// imageName is a container image: an optional registry, lower-case path parts, an optional tag.
var imageName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([\w.-]+(:\d+)?/)?` +
		`[a-z0-9]+([._/-][a-z0-9]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
})

func family(kind string) string {
	name, _, _ := strings.Cut(kind, ":")
	return name
}

// kindNames are the kinds that an action may name.
func (p *Platform) kindNames() []string {
	unlisted := func(name string) bool { return p.cfg.Kinds[name].Unlisted }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.cfg.Kinds)), unlisted)
}

// runsAs is the kind whose containers run an action: its own, or the one that stands for its image. false where the
// image is none of this platform's, as where a cluster cannot pull it.
func (c *Config) runsAs(e *execSpec) (kind string, ok bool) {
	if e.Kind != blackbox {
		return e.Kind, true
	}
	kind, ok = c.Images[e.Image]
	return kind, ok
}

// resolveKind turns X:default into the family's default.
func (p *Platform) resolveKind(kind string) string {
	name, ok := strings.CutSuffix(kind, ":default")
	if !ok {
		return kind
	}
	found := kind
	for _, k := range p.kindNames() {
		if family(k) != name {
			continue
		}
		if p.cfg.Kinds[k].Default {
			return k
		}
		found = k
	}
	return found
}

// newExec checks what an action shall run; components of a sequence are checked apart, where actions can be read.
func (p *Platform) newExec(e execSpec) (execSpec, error) {
	if size := disdel.Bytes(len(e.Code)); size > p.cfg.Limits.Code {
		return e, problem{413, textTooLarge("exec", int64(size), p.cfg.Limits.Code)}
	}
	if e.Kind == sequenceKind {
		return execSpec{Kind: sequenceKind, Components: e.Components}, nil
	}
	e.Kind, e.Components = p.resolveKind(e.Kind), nil
	if !slices.Contains(p.kindNames(), e.Kind) && e.Kind != blackbox {
		return e, problem{400, textKind(e.Kind, p.kindNames())}
	}
	if kind, ok := p.cfg.runsAs(&e); ok {
		if why := p.userOfKind(kind).Refused; why != "" {
			return e, problem{400, textRefusedKind(e.Kind, why)}
		}
	}
	if !e.coded && e.Image == "" {
		return e, problem{400, textMalformed(fmt.Sprintf(textCodeMissing, e.Kind))}
	}
	_, err := base64.StdEncoding.DecodeString(e.Code)
	e.Binary, e.coded = err == nil && e.Code != "", false
	return e, nil
}
