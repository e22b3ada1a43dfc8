package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"
	"github.com/cenkalti/backoff/v5"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// Config is where the platform is and how it is asked.
type Config struct {
	APIHost   string        // with its scheme
	AuthKey   string        // uuid:key
	Namespace string        // empty: the key's own
	Image     string        // container image of the action runtime; empty: actions are of disdel.RuntimeKind
	Insecure  bool          // do not check the server's certificate
	PollEvery time.Duration // longest time between looks at a running activation; 0: 500 ms
	Logger    logrus.FieldLogger
	// Beats gives the heartbeats of an invocation's slot, oldest first, once it has failed or was lost: the evidence of how it
	// ended. Those of earlier attempts may be among them. nil: none are known.
	Beats func(ctx context.Context, inv disdel.Invocation) []disdel.Progress
}

// Executor runs actions on one OpenWhisk namespace. It is safe for concurrent use.
type Executor struct {
	cfg       Config
	transport *http.Transport
}

// New returns an Executor. It returns Invalid without host, key or logger; nothing is asked of the server yet.
func New(cfg Config) (*Executor, error) {
	if cfg.APIHost == "" || cfg.AuthKey == "" || cfg.Logger == nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open OpenWhisk", Msg: "host, key and logger must be set"}
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "_"
	}
	if cfg.PollEvery == 0 {
		cfg.PollEvery = 500 * time.Millisecond
	}
	return &Executor{cfg: cfg, transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute}}, nil
}

// Close ends idle connections.
func (e *Executor) Close() error {
	e.transport.CloseIdleConnections()
	return nil
}

// bound gives every request of a client a context and an end, which openwhisk-client-go does not know, and reads the
// answer whole, because that client leaves bodies open.
type bound struct {
	ctx  context.Context
	next http.RoundTripper
}

// callTimeout is longer than OpenWhisk's 60 s of a blocking invocation.
const callTimeout = 90 * time.Second

func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithTimeout(b.ctx, callTimeout)
	defer stop()
	res, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(res.Body)
	res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(data))
	return res, err
}

// client makes a client for one call: using one changes its namespace for good, so that sharing it races.
func (e *Executor) client(ctx context.Context) (*whisk.Client, error) {
	c, err := whisk.NewClient(&http.Client{Transport: bound{ctx, e.transport}}, &whisk.Config{
		Host: e.cfg.APIHost, AuthToken: e.cfg.AuthKey, Namespace: e.cfg.Namespace, Insecure: e.cfg.Insecure,
	})
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open OpenWhisk", Msg: disdel.Redacted(e.cfg.APIHost), Err: errors.New("it is no URL"), Hint: "check --apihost"}
	}
	return c, nil
}

// answer is what a call got, as far as anything came.
func answer(res *http.Response) (status int, text string) {
	if res == nil {
		return 0, ""
	}
	var body struct {
		Error any `json:"error"`
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && json.Unmarshal(data, &body) == nil && body.Error != nil {
		text = fmt.Sprint(body.Error)
	}
	return res.StatusCode, text
}

// wrap tells what a failed call means. The server's own words become the cause.
func (e *Executor) wrap(ctx context.Context, err error, res *http.Response, op, what string) error {
	if err == nil {
		return nil
	}
	status, text := answer(res)
	if text == "" {
		text = err.Error()
	}
	out := &disdel.Error{Op: op, Msg: what, Err: errors.New(text)}
	switch {
	case ctx.Err() != nil:
		out.Kind, out.Err = disdel.Canceled, context.Cause(ctx)
	case status == 0:
		out.Kind, out.Hint = disdel.Unavailable, "check that OpenWhisk runs at "+disdel.Redacted(e.cfg.APIHost)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		out.Kind, out.Hint = disdel.Denied, "check the key: DISDEL_AUTH, or AUTH in ~/.wskprops"
	case status == http.StatusNotFound:
		out.Kind = disdel.NotFound
	case status == http.StatusConflict && strings.Contains(text, "Concurrent modification"):
		out.Kind = disdel.Unavailable
	case status == http.StatusConflict:
		out.Kind = disdel.Conflict
	case status == http.StatusRequestEntityTooLarge:
		out.Kind, out.Hint = disdel.OverLimit, "OpenWhisk takes 1 MB of parameters and 48 MB of code: put data on the blob store and code into an image"
	case status == http.StatusTooManyRequests && strings.Contains(text, "in the last minute"):
		out.Kind, out.Hint = disdel.Unavailable, "have an admin raise the namespace's invocationsPerMinute, or synchronise less often (distribution.sync)"
	case status == http.StatusTooManyRequests:
		out.Kind, out.Hint = disdel.Unavailable, "run fewer workers, or have an admin raise the namespace's concurrentInvocations"
	case strings.Contains(text, "allowed threshold of"):
		out.Kind, out.Hint = disdel.OverLimit, "ask for less, or have an admin raise the limit (whisk.memory.max, whisk.time-limit.max)"
	case status >= 500:
		out.Kind, out.Hint = disdel.Unavailable, "submit the job again; if it stays, ask the platform's admin whether an invoker is healthy"
	default:
		out.Kind = disdel.Invalid
	}
	return out
}

// patience is how long a call is tried again while the server asks to come later or cannot be reached.
const patience = 2 * time.Minute

// again repeats a call while its error is Unavailable, with growing pauses; when the minute's quota is used up, until the
// minute has turned (OpenWhisk counts by the wall clock).
func again[T any](ctx context.Context, log logrus.FieldLogger, call func() (T, error)) (T, error) {
	return againFor(ctx, log, patience, call)
}

func againFor[T any](ctx context.Context, log logrus.FieldLogger, limit time.Duration, call func() (T, error)) (T, error) {
	return backoff.Retry(ctx, func() (T, error) {
		v, err := call()
		switch {
		case err == nil:
			return v, nil
		case disdel.KindOf(err) != disdel.Unavailable:
			return v, backoff.Permanent(err)
		case strings.Contains(err.Error(), "in the last minute"):
			log.WithError(err).Warn("the minute's quota is used up; waiting for the next one")
			return v, backoff.RetryAfter(61 - time.Now().Second())
		default:
			log.WithError(err).Debug("trying again")
			return v, err
		}
	}, backoff.WithMaxElapsedTime(limit), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 50 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 10 * time.Second,
	}))
}
