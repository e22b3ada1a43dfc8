package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/secrets"
)

// Config names the platform and how to call it.
type Config struct {
	APIHost   string        // URL of the API host
	AuthKey   string        // uuid:key
	Namespace string        // empty: the key's namespace
	Image     string        // container image of the action runtime; empty: actions have the kind disdel.RuntimeKind
	Insecure  bool          // do not check the server's certificate
	PollEvery time.Duration // longest time between two checks of a running activation; 0: 500 ms
	Patience  time.Duration // how long OpenWhisk may fail to answer; 0: 3 min
	MaxQueue  time.Duration // how long an activation may give no sign of life; 0: 2 h
	Logger    logrus.FieldLogger
	// Heartbeats returns the heartbeats of an invocation's slot, oldest first. They may include earlier attempts. It is
	// called after the activation failed or was lost, as evidence of the cause. nil: there are none.
	Heartbeats func(ctx context.Context, inv disdel.Invocation) []disdel.Progress
	// Seal encrypts passwords in the parameters of activations, because parameters lie unencrypted in OpenWhisk's queue.
	// Each action gets a key in its code. The action runtime must have this version.
	Seal bool
	// Transport carries the requests; nil: HTTP over the network. Simulations have a platform in the same process.
	Transport http.RoundTripper
	// Jitter draws a duration from 0 up to most, which spreads retries; nil: at random. Simulations draw it from a seed.
	Jitter func(most time.Duration) time.Duration
}

// Executor runs actions in one OpenWhisk namespace. It is safe for concurrent use.
type Executor struct {
	cfg       Config
	base      *url.URL // of the API
	transport http.RoundTripper
	health    health
	quotas    quotaGate
	probes    probes
	key       secrets.Key // zero: nothing is encrypted
}

// New returns an Executor. It returns Invalid without host, key or logger. It makes no request.
func New(cfg Config) (*Executor, error) {
	if cfg.APIHost == "" || cfg.AuthKey == "" || cfg.Logger == nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open OpenWhisk", Msg: "host, key and logger must be set"}
	}
	base, err := checkAddress(cfg.APIHost)
	if err != nil {
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
	if cfg.MaxQueue == 0 {
		cfg.MaxQueue = maxQueue
	}
	if cfg.Jitter == nil {
		cfg.Jitter = func(most time.Duration) time.Duration { return rand.N(most + 1) }
	}
	e := &Executor{
		cfg: cfg, base: base, transport: cfg.Transport,
		probes: probes{turn: make(chan struct{}, 1), byAction: map[disdel.ActionName]*probe{}},
	}
	if e.transport == nil {
		e.transport = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute}
	}
	if cfg.Seal {
		e.key = secrets.NewKey()
	}
	return e, nil
}

// checkAddress reads an address. It refuses one with a user or a password, because messages repeat the address. The
// error does not repeat it.
func checkAddress(host string) (*url.URL, error) {
	bad := func(why string) (*url.URL, error) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open OpenWhisk", Msg: why,
			Hint: "--apihost https://HOST:PORT, and the key in DISDEL_AUTH or in ~/.wskprops",
		}
	}
	if strings.Contains(host, "@") {
		return bad("the address of --apihost contains a user or a password; the key has its own place")
	}
	_, err := url.Parse(host)
	base, baseErr := whisk.GetUrlBase(host) // it takes some that are none, and refuses others
	if err != nil || baseErr != nil {
		return bad("the address of --apihost is no URL")
	}
	return base, nil
}

// Close ends idle connections.
func (e *Executor) Close() error {
	if t, ok := e.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// boundTransport gives every request of a client a context and a timeout, which openwhisk-client-go does not support.
// It reads the whole answer, because that client leaves bodies open.
type boundTransport struct {
	ctx    context.Context
	next   http.RoundTripper
	health *health
}

// callTimeout bounds one call. No call waits for an activation, so a slower one is lost.
const callTimeout = 20 * time.Second

func (b boundTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithTimeout(b.ctx, callTimeout)
	defer stop()
	b.health.requestSent()
	res, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, b.noteFailure(err)
	}
	data, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return nil, b.noteFailure(err)
	}
	b.health.answerReceived()
	res.Body = io.NopCloser(bytes.NewReader(data))
	return res, nil
}

func (b boundTransport) noteFailure(err error) error {
	if b.ctx.Err() == nil { // a canceled call says nothing about the server
		b.health.requestFailed(err)
	}
	return err
}

// errRedirected is the error of an address that redirects. The key goes only to the configured address.
var errRedirected = errors.New("it redirects to another address, which is not followed")

// client makes a client for one call. A shared one would race, because a call can change its namespace.
func (e *Executor) client(ctx context.Context) *whisk.Client {
	direct := &http.Client{
		Transport:     boundTransport{ctx, e.transport, &e.health},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
	}
	base := *e.base
	c, _ := whisk.NewClient(direct, &whisk.Config{ //nolint:errcheck // it refuses only addresses, which New has read
		Host: e.cfg.APIHost, BaseURL: &base, AuthToken: e.cfg.AuthKey, Namespace: e.cfg.Namespace, Insecure: e.cfg.Insecure,
	})
	return c
}

// answer returns the status and the error text of a call; 0 and "" if there was no answer.
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

// wrap makes an Error of a failed call. The server's text becomes the cause.
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
	e.quotas.noteQuota(time.Now(), out.Code, text)
	return out
}
