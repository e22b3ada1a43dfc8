package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/secrets"
)

// Config is where the platform is and how it is asked.
type Config struct {
	APIHost   string        // with its scheme
	AuthKey   string        // uuid:key
	Namespace string        // empty: the key's own
	Image     string        // container image of the action runtime; empty: actions are of disdel.RuntimeKind
	Insecure  bool          // do not check the server's certificate
	PollEvery time.Duration // longest time between looks at a running activation; 0: 500 ms
	Patience  time.Duration // with an OpenWhisk that does not answer; 0: 3 min
	MostQueue time.Duration // that an activation is waited for of which OpenWhisk gives no sign; 0: 2 h
	Logger    logrus.FieldLogger
	// Beats gives the heartbeats of an invocation's slot, oldest first, once it has failed or was lost: the evidence of
	// how it ended. Those of earlier attempts may be among them. nil: none are known.
	Beats func(ctx context.Context, inv disdel.Invocation) []disdel.Progress
	// Seal has passwords in what activations are given sealed, with a key that each action gets in its code: parameters
	// lie in OpenWhisk's queue in clear. It takes an action runtime of this version.
	Seal bool
}

// Executor runs actions on one OpenWhisk namespace. It is safe for concurrent use.
type Executor struct {
	cfg       Config
	transport http.RoundTripper
	health    health
	pace      pace
	probes    probes
	key       secrets.Key // zero: nothing is sealed
}

// New returns an Executor. It returns Invalid without host, key or logger; nothing is asked of the server yet.
func New(cfg Config) (*Executor, error) {
	if cfg.APIHost == "" || cfg.AuthKey == "" || cfg.Logger == nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open OpenWhisk", Msg: "host, key and logger must be set"}
	}
	if err := checkAddress(cfg.APIHost); err != nil {
		return nil, err
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "_"
	}
	if cfg.PollEvery == 0 {
		cfg.PollEvery = 500 * time.Millisecond
	}
	if cfg.Patience == 0 {
		cfg.Patience = patience
	}
	if cfg.MostQueue == 0 {
		cfg.MostQueue = mostQueue
	}
	e := &Executor{cfg: cfg, transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute}}
	if cfg.Seal {
		e.key = secrets.NewKey()
	}
	return e, nil
}

// checkAddress refuses an address with a user or a password in it: they would stand in every message, and the key has a
// place of its own. It repeats nothing of what it refuses.
func checkAddress(host string) error {
	bad := func(why string) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "open OpenWhisk", Msg: why,
			Hint: "--apihost https://HOST:PORT, and the key in DISDEL_AUTH or in ~/.wskprops",
		}
	}
	u, err := url.Parse(host)
	switch {
	case err != nil:
		return bad("the address of --apihost is no URL")
	case u.User != nil || strings.Contains(host, "@"):
		return bad("the address of --apihost has a user or a password in it, which is no place for a key")
	default:
		return nil
	}
}

// Close ends idle connections.
func (e *Executor) Close() error {
	if t, ok := e.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// bound gives every request of a client a context and an end, which openwhisk-client-go does not know, and reads the
// answer whole, because that client leaves bodies open.
type bound struct {
	ctx    context.Context
	next   http.RoundTripper
	health *health
}

// callTimeout bounds one call. None of them waits for an activation: those that take longer than this are lost on their
// way.
const callTimeout = 20 * time.Second

func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithTimeout(b.ctx, callTimeout)
	defer stop()
	b.health.ask()
	res, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, b.missed(err)
	}
	data, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return nil, b.missed(err)
	}
	b.health.heard()
	res.Body = io.NopCloser(bytes.NewReader(data))
	return res, nil
}

func (b bound) missed(err error) error {
	if b.ctx.Err() == nil { // else nobody waits for the answer any more, which says nothing of the server
		b.health.missed(err)
	}
	return err
}

// errRedirected is of an address that is not OpenWhisk's own: where it leads nobody has vouched for, and the key goes
// nowhere else.
var errRedirected = errors.New("it redirects to another address, which is not followed")

// client makes a client for one call: using one changes its namespace for good, so that sharing it races.
func (e *Executor) client(ctx context.Context) (*whisk.Client, error) {
	direct := &http.Client{
		Transport:     bound{ctx, e.transport, &e.health},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
	}
	c, err := whisk.NewClient(direct, &whisk.Config{
		Host: e.cfg.APIHost, AuthToken: e.cfg.AuthKey, Namespace: e.cfg.Namespace, Insecure: e.cfg.Insecure,
	})
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open OpenWhisk", Msg: disdel.Redacted(e.cfg.APIHost),
			Err: errors.New("it is no URL"), Hint: "check --apihost",
		}
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
	case strings.Contains(err.Error(), errRedirected.Error()), status >= 300 && status < 400:
		out.Kind, out.Err = disdel.Invalid, errRedirected
		out.Hint = "name the API's own address with --apihost"
	case status == 0:
		out = e.unreachable(op)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		out.Kind, out.Hint = disdel.Denied, "check the key: DISDEL_AUTH, or AUTH in ~/.wskprops"
	case status == http.StatusNotFound:
		out.Kind = disdel.NotFound
	case status == http.StatusConflict && strings.Contains(text, "Concurrent modification"):
		out.Kind = disdel.Unavailable
	case status == http.StatusConflict:
		out.Kind = disdel.Conflict
	case status == http.StatusRequestEntityTooLarge:
		out.Kind, out.Hint = disdel.OverLimit,
			"OpenWhisk takes 1 MB of parameters and 48 MB of code: put data on the blob store and code into an image"
	case status == http.StatusTooManyRequests && strings.Contains(text, "in the last minute"):
		out.Code = disdel.CodeQuotaMinute
		out.Kind, out.Hint = disdel.Unavailable,
			"have an admin raise the namespace's invocationsPerMinute, or synchronise less often (distribution.sync)"
	case status == http.StatusTooManyRequests:
		out.Code = disdel.CodeQuotaConcurrent
		out.Kind, out.Hint = disdel.Unavailable,
			"run fewer workers, or have an admin raise the namespace's concurrentInvocations"
	case strings.Contains(text, "allowed threshold of"):
		out.Kind, out.Hint = disdel.OverLimit,
			"ask for less, or have an admin raise the limit (whisk.memory.max, whisk.time-limit.max)"
	case strings.Contains(text, "The specified runtime"):
		out.Kind = disdel.Invalid
		out.Hint = "this OpenWhisk has no kind " + disdel.RuntimeKind +
			": name a container image of the action runtime with --image IMAGE, or have an admin add the kind"
	case status >= 500:
		out.Kind, out.Hint = disdel.Unavailable,
			"submit the job again; if it stays, ask the platform's admin whether an invoker is healthy"
	default:
		out.Kind = disdel.Invalid
	}
	e.pace.name(time.Now(), out.Code, text)
	return out
}
