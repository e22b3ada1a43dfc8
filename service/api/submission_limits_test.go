package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
)

// The server keeps nothing of a stranger's origin that is no command of disdel, cannot be printed, or names a place.
func TestOriginsOfClients(t *testing.T) {
	for name, o := range map[string]disdel.Origin{
		"a shell's text as command": {Command: "submit x; touch PWNED; #"},
		"a flag with shell text":    {Command: "submit", Options: []disdel.Option{{Name: "home $(touch P2)", Value: "/x"}}},
		"an escape":                 {Command: "submit", File: "job\x1b[2J.yaml"},
		"a bidirectional override":  {Command: "submit", Sets: []string{"a=\u202e"}},
	} {
		if got, err := sentOrigin(&o); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	long := strings.Repeat("x", mostText+1)
	for name, o := range map[string]disdel.Origin{
		"a long file":    {Command: "submit", File: long},
		"a long setting": {Command: "submit", Sets: []string{long}},
		"a long value":   {Command: "submit", Options: []disdel.Option{{Name: "risk", Value: long}}},
		"many settings":  {Command: "submit", Sets: make([]string, mostSets+1)},
		"many flags":     {Command: "submit", Options: make([]disdel.Option, 100)},
	} {
		if err := checkSubmission(&apitypes.Submission{Origin: &o}); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := disdel.Origin{Command: "submit", File: "job.yaml", Sets: []string{"training.epochs=2"}, Options: []disdel.Option{
		{Name: "server", Value: "https://evil.example"},
		{Name: "redis", Value: "redis://evil.example"},
		{Name: "home", Value: "/x"},
		{Name: "apihost", Value: "https://evil.example"},
		{Name: "action", Value: "/tmp/x"},
		{Name: "context", Value: "evil"},
		{Name: "image", Value: "evil/x"},
		{Name: "risk", Value: "0.01"},
	}}
	got, err := sentOrigin(&o)
	if err != nil || !slices.Equal(got.Options, []disdel.Option{{Name: "risk", Value: "0.01"}}) || got.File != o.File {
		t.Errorf("%+v, %v", got, err)
	}
}

// A job file of the page is held to the rules of the API: the server runs no programs of its users.
func TestThePageSendsNoPrograms(t *testing.T) {
	_, err := fromPage("apiVersion: disdel/v1\nkind: TrainingJob\nmetadata: {name: a}\nmodel: {custom: ../x}\n" +
		"data: {source: \"dataset://digits\"}\ntraining: {epochs: 1}\n")
	if disdel.KindOf(err) != disdel.Denied {
		t.Errorf("%v", err)
	}
	req, err := fromPage("apiVersion: disdel/v1\nkind: TrainingJob\nmetadata: {name: a}\nmodel: {name: digits-cnn}\n" +
		"data: {source: \"dataset://digits\"}\ntraining: {epochs: 1}\n")
	if err != nil || req.Origin == nil || req.Origin.Command != "submit" {
		t.Errorf("%+v, %v", req.Origin, err)
	}
}
