package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/disdel/disdel"
)

// calls are the calls that ask OpenWhisk something and return its error.
func calls(e *Executor) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Limits":        func(ctx context.Context) error { _, err := e.Limits(ctx); return err },
		"Deployment":    func(ctx context.Context) error { _, err := e.Deployment(ctx, "pkg"); return err },
		"deployed":      func(ctx context.Context) error { _, err := e.deployed(ctx, "pkg", "train"); return err },
		"PutPackage":    func(ctx context.Context) error { return e.PutPackage(ctx, Deployment{Package: "pkg"}) },
		"PutAction":     func(ctx context.Context) error { return e.PutAction(ctx, "pkg", DeployedAction{Name: "train"}) },
		"RemoveAction":  func(ctx context.Context) error { return e.RemoveAction(ctx, "pkg", "train") },
		"RemovePackage": func(ctx context.Context) error { return e.RemovePackage(ctx, "pkg") },
		"Quotas":        func(ctx context.Context) error { _, err := e.Quotas(ctx); return err },
		"Prepare": func(ctx context.Context) error {
			return e.Prepare(ctx, "pkg", []disdel.ActionPlan{{Name: "pkg/train", Task: disdel.TaskTrain}})
		},
		"Invoke":         func(ctx context.Context) error { _, err := e.Invoke(ctx, inv); return err },
		"InvokeOnce":     func(ctx context.Context) error { _, err := e.InvokeOnce(ctx, inv); return err },
		"InvokeBlocking": func(ctx context.Context) error { _, err := e.InvokeBlocking(ctx, inv); return err },
		"fetchRecord":    func(ctx context.Context) error { _, _, err := e.fetchRecord(ctx, inv, id); return err },
		"Remove":         func(ctx context.Context) error { return e.Remove(ctx, "pkg") },
	}
}

// A refusal of the key is told by every call, and is not taken for an outage or an empty answer.
func TestEveryCallTellsARefusal(t *testing.T) {
	e, _ := scripted(t, answerOf{403, `{"error": "the key is refused"}`})
	for name, call := range calls(e) {
		if err := call(t.Context()); !errors.Is(err, disdel.Denied) {
			t.Errorf("%s: %v, want Denied", name, err)
		}
	}
}

// An address that is no URL is the user's mistake, told by every call without a request.
func TestEveryCallTellsABadAddress(t *testing.T) {
	e, w := scripted(t, answerOf{200, `{}`})
	e.cfg.APIHost = ""
	for name, call := range calls(e) {
		if err := call(t.Context()); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v, want Invalid", name, err)
		}
	}
	if len(w.asked) > 0 {
		t.Errorf("requests %q", w.asked)
	}
}

// A package whose second request is refused is not taken for a whole one.
func TestARefusedSecondRequestIsTold(t *testing.T) {
	const pkg = `{"name": "pkg", "actions": [{"name": "train"}]}`
	for _, name := range []string{"Deployment", "Prepare", "Remove"} {
		e, _ := scripted(t, answerOf{200, pkg}, answerOf{403, `{"error": "the key is refused"}`})
		if err := calls(e)[name](t.Context()); !errors.Is(err, disdel.Denied) {
			t.Errorf("%s: %v, want Denied", name, err)
		}
	}
}
