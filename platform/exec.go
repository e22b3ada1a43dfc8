package platform

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
}

// MarshalJSON leaves binary out of sequences, which have no code (OpenWhisk's SequenceExec).
func (e execSpec) MarshalJSON() ([]byte, error) {
	type plain execSpec
	if e.Kind != sequenceKind {
		return json.Marshal(plain(e))
	}
	return json.Marshal(struct {
		Kind       string   `json:"kind"`
		Components []string `json:"components"`
	}{e.Kind, e.Components})
}

func family(kind string) string {
	name, _, _ := strings.Cut(kind, ":")
	return name
}

func (p *Platform) kindNames() []string { return slices.Sorted(maps.Keys(p.cfg.Kinds)) }

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
	if _, ok := p.cfg.Kinds[e.Kind]; !ok {
		return e, problem{400, textKind(e.Kind, p.kindNames())}
	}
	if e.Code == "" && e.Image == "" {
		return e, problem{400, textMalformed(fmt.Sprintf(textCodeMissing, e.Kind))}
	}
	_, err := base64.StdEncoding.DecodeString(e.Code)
	e.Binary = err == nil && e.Code != ""
	return e, nil
}
