package executor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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

// What is no address of an OpenWhisk, and what is missing, is said before any request.
func TestNewRefusesWhatCannotBeAsked(t *testing.T) {
	for what, cfg := range map[string]Config{
		"no host": {AuthKey: "user:key", Logger: quiet()}, "no key": {APIHost: "localhost", Logger: quiet()},
		"no logger": {APIHost: "localhost", AuthKey: "user:key"},
		"no URL":    {APIHost: "http://[::1", AuthKey: "user:key", Logger: quiet()},
		"a space":   {APIHost: "a b", AuthKey: "user:key", Logger: quiet()},
		"a user":    {APIHost: "http://user@localhost", AuthKey: "user:key", Logger: quiet()},
	} {
		if _, err := New(cfg); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v, want Invalid", what, err)
		}
	}
}

// An answer that ends in the middle is no answer: the call says that OpenWhisk could not be reached.
func TestAnAnswerThatEndsInTheMiddleIsNone(t *testing.T) {
	address := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, `{"act`)
	})
	e, err := New(Config{APIHost: address, AuthKey: "user:key", Logger: quiet(), Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.InvokeOnce(t.Context(), inv); disdel.AsError(err).Code != disdel.CodeUnreachable {
		t.Errorf("%v, want unreachable", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := e.Quotas(ctx); err == nil {
		t.Error("quotas were read from half an answer")
	}
}

// An OpenWhisk that does not tell the namespace's own quotas leaves those of its front page.
func TestLimitsWithoutOwnQuotas(t *testing.T) {
	front := answerOf{200, `{"limits": {"actions_per_minute": 7, "concurrent_actions": 3}}`}
	e, _ := scripted(t, front, answerOf{500, `{"error": "not now"}`})
	l, err := e.Limits(t.Context())
	if err != nil || l.PerMinute != 7 || l.Concurrent != 3 {
		t.Errorf("%+v, %v", l, err)
	}
}

// A namespace's own quotas hold rather than those of the front page, also for the executor's own requests.
func TestOwnQuotasHold(t *testing.T) {
	front := answerOf{200, `{"limits": {"actions_per_minute": 7, "concurrent_actions": 3}}`}
	e, _ := scripted(t, front, answerOf{200, `{"invocationsPerMinute": 1, "concurrentInvocations": 2}`},
		answerOf{202, `{"activationId": "` + id + `"}`})
	if l, err := e.Limits(t.Context()); err != nil || l.PerMinute != 1 || l.Concurrent != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	now := time.Now() // of two requests at different times, the second may be the next minute's
	if first, second := e.quotas.tryRequest(now), e.quotas.tryRequest(now); first > 0 || second <= 0 {
		t.Errorf("two requests in a minute that allows one wait %v and %v", first, second)
	}
}

// The front page's limits hold. OpenWhisk's standard limits hold where the page names none.
func TestTheFrontPagesLimitsHold(t *testing.T) {
	for page, want := range map[string]disdel.PlatformLimits{
		`{"limits": {"min_action_memory": 67108864, "max_action_memory": 2147483648, "min_action_duration": 200,
			"max_action_duration": 600000}}`: {
			MinMemory: 64 * disdel.MB, MaxMemory: 2 * disdel.GB, MinTimeout: disdel.Millis(200 * time.Millisecond),
			MaxTimeout: disdel.Millis(10 * time.Minute),
		},
		`{"limits": {}}`: {
			MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB, MinTimeout: disdel.Millis(100 * time.Millisecond),
			MaxTimeout: disdel.Millis(5 * time.Minute),
		},
	} {
		e, _ := scripted(t, answerOf{200, page}, answerOf{500, `{"error": "not now"}`})
		if got, err := e.Limits(t.Context()); err != nil || got != want {
			t.Errorf("%s gives %+v, %v, not %+v", page, got, err, want)
		}
	}
}

// Who gives up while it waits for the next minute's quota is told so, and asked nothing.
func TestGivingUpInTheMinutesQueue(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second))) // in the middle of a minute
		e.quotas.setQuotas(disdel.PlatformLimits{PerMinute: 1})
		if _, err := e.InvokeOnce(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		if _, err := e.InvokeOnce(ctx, inv); !errors.Is(err, disdel.Canceled) {
			t.Errorf("%v, want Canceled", err)
		}
		if len(c.accepted) != 1 {
			t.Errorf("%d requests were sent", len(c.accepted))
		}
	})
}

// A request that cannot be made is not sent: the call says why at once, or does without that answer.
func TestARequestThatCannotBeMadeIsNotSent(t *testing.T) {
	e, w := scripted(t, answerOf{200, `{"limits": {"actions_per_minute": 7, "concurrent_actions": 3}}`})
	e.cfg.AuthKey = "" // the namespace's own quotas need it
	if l, err := e.Limits(t.Context()); err != nil || l.PerMinute != 7 || l.Concurrent != 3 || len(w.asked) != 1 {
		t.Errorf("%+v, %v after %q", l, err, w.asked)
	}
	e.cfg.APIHost = "http://[::1"
	if _, err := e.Limits(t.Context()); err == nil || !strings.Contains(err.Error(), "missing ']'") || len(w.asked) != 1 {
		t.Errorf("%v after %q", err, w.asked)
	}
}

// What a deployed action gets is what was asked for, in OpenWhisk's units. Limits that were not given are not sent.
func TestADeployedActionsLimitsAreSent(t *testing.T) {
	for sent, d := range map[string]DeployedAction{
		`"limits":{"timeout":90000,"memory":192,"logs":3}`: {
			Name: "train", Memory: 192 * disdel.MB, Timeout: 90 * time.Second, Logs: 3 * disdel.MB,
		},
		`"limits":{}`: {Name: "train"},
	} {
		e, w := scripted(t, answerOf{200, `{}`})
		if err := e.PutAction(t.Context(), "pkg", d); err != nil || !strings.Contains(w.asked[0], sent) {
			t.Errorf("%q was sent, %v; it lacks %s", w.asked, err, sent)
		}
	}
}
