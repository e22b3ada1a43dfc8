package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/secrets"
)

// Handler answers one activation: params are its parameters, the result becomes its response. ctx ends at the
// activation's deadline and when memory runs out.
type Handler func(ctx context.Context, params json.RawMessage) (any, error)

// Config configures a Server. The zero value has no memory limit and logs to the process's own streams.
type Config struct {
	// Limit of resident memory; 0: a request's limitBytes, if it has one.
	Limit          disdel.Bytes
	WatchEvery     time.Duration                        // between looks at resident memory; 0: 20 ms
	Stdout, Stderr io.Writer                            // nil: the process's
	Memory         func() (resident, peak disdel.Bytes) // nil: Memory
	Concurrency    int                                  // activations at once; 0: one
	Together       []disdel.Task                        // of these as many at once as /init allows
	BodyWait       time.Duration                        // for a request's body; 0: 2 minutes
	Setenv         func(key, value string) error        // nil: os.Setenv, the process being the container
}

// Server is the action runtime of one container.
type Server struct {
	handlers map[disdel.Task]Handler
	cfg      Config

	mu      sync.Mutex
	task    disdel.Task // set by /init
	handler Handler
	silent  bool // ends no log with a sentinel
	busy    int  // activations that run
	watch   *watch
}

// Sentinel ends an activation's log on both streams.
const Sentinel = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX"

// maxBody bounds a request: OpenWhisk's own bound on code is 48 MB, on parameters 1 MB.
const maxBody = 50 << 20

// New makes a server for handlers.
func New(handlers map[disdel.Task]Handler, cfg Config) *Server {
	if cfg.WatchEvery == 0 {
		cfg.WatchEvery = 20 * time.Millisecond
	}
	if cfg.Stdout == nil {
		cfg.Stdout = os.Stdout
	}
	if cfg.Stderr == nil {
		cfg.Stderr = os.Stderr
	}
	if cfg.Memory == nil {
		cfg.Memory = func() (resident, peak disdel.Bytes) { return Memory() }
	}
	if cfg.Setenv == nil {
		cfg.Setenv = os.Setenv
	}
	if cfg.BodyWait == 0 {
		cfg.BodyWait = 2 * time.Minute
	}
	cfg.Concurrency = max(cfg.Concurrency, 1)
	return &Server{handlers: handlers, cfg: cfg, watch: newWatch(cfg.WatchEvery, cfg.Memory)}
}

// Listen opens "unix:/path", "tcp:host:port" or ":8080".
func Listen(address string) (net.Listener, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	l, err := net.Listen(network, strings.TrimPrefix(address, "tcp:"))
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "listen", Msg: address, Err: err}
	}
	return l, nil
}

// Serve answers on l until ctx ends, then lets a running activation finish for a second.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// no write timeout: an action may take hours
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return &disdel.Error{Kind: disdel.Unavailable, Op: "serve", Err: err}
	case <-ctx.Done():
		quiet, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		if err := srv.Shutdown(quiet); err != nil {
			srv.Close()
		}
		<-done
		return nil
	}
}

// ServeHTTP answers /init and /run.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		answer(w, http.StatusMethodNotAllowed, failure("only POST is answered"))
		return
	}
	body, err := s.read(w, r)
	if err != nil {
		w.Header().Set("Connection", "close")
		answer(w, http.StatusRequestEntityTooLarge, failure("the request is too large or was cut off"))
		return
	}
	switch r.URL.Path {
	case "/init":
		s.init(w, body)
	case "/run":
		s.run(r.Context(), w, body)
	default:
		answer(w, http.StatusNotFound, failure("there is only /init and /run"))
	}
}

// read reads a request's body within a time limit: a client that never finishes must not block the container. The limit
// is for reading only; an activation may take longer.
func (s *Server) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(s.cfg.BodyWait)) //nolint:errcheck // a recorder of tests has no deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		control.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
	}
	return body, err
}

func failure(text string) map[string]any { return map[string]any{"error": text} }

// answer writes v with a Content-Length: the invoker treats a response of unknown length as missing. It also says that
// the connection stays open.
func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status = http.StatusInternalServerError
		data = []byte(`{"error":"the result cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if w.Header().Get("Connection") == "" {
		w.Header().Set("Connection", "keep-alive")
	}
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the invoker went away: there is nobody to tell
}

type initRequest struct {
	Value struct {
		Name string            `json:"name"`
		Main string            `json:"main"`
		Code string            `json:"code"` // what opens sealed parameters; of kinds with code of their own, that
		Env  map[string]string `json:"env"`
		// Sentinels is false if the caller does not need sentinels in the log, as the embedded platform.
		Sentinels *bool `json:"sentinels"`
		// Concurrency is the number of activations that may run at once; 0 if the caller does not say, as OpenWhisk.
		Concurrency int `json:"concurrency"`
	} `json:"value"`
}

func (s *Server) init(w http.ResponseWriter, body []byte) {
	var req initRequest
	if err := json.Unmarshal(body, &req); err != nil {
		answer(w, http.StatusBadRequest, failure("the request of /init is no JSON of the known form"))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handler != nil {
		const twice = "Cannot initialize the action more than once."
		fmt.Fprintln(s.cfg.Stderr, twice)
		answer(w, http.StatusForbidden, failure(twice))
		return
	}
	h, ok := s.handlers[disdel.Task(req.Value.Main)]
	if !ok {
		answer(w, http.StatusBadRequest, failure(fmt.Sprintf("there is no task %q", req.Value.Main)))
		return
	}
	if err := s.setenv(s.taken(req.Value.Env)); err != nil {
		answer(w, http.StatusBadRequest, failure(fmt.Sprintf("the environment cannot be set: %v", err)))
		return
	}
	if key, found := secrets.FromCode(req.Value.Code); found {
		h = opening(key, h)
	}
	s.task, s.handler = disdel.Task(req.Value.Main), h
	if slices.Contains(s.cfg.Together, s.task) {
		s.cfg.Concurrency = max(s.cfg.Concurrency, req.Value.Concurrency)
	}
	reply := map[string]any{"ok": true}
	if asked := req.Value.Sentinels; asked != nil && !*asked {
		s.silent = true
		reply["sentinels"] = false
	}
	answer(w, http.StatusOK, reply)
}

// opening is a handler that opens sealed parameters first.
func opening(key secrets.Key, h Handler) Handler {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		opened, err := key.Open(params)
		if err != nil {
			return nil, err
		}
		return h(ctx, opened)
	}
}

type runRequest struct {
	Value         json.RawMessage `json:"value"`
	Namespace     string          `json:"namespace"`
	ActionName    string          `json:"action_name"`
	ActionVersion string          `json:"action_version"`
	ActivationID  string          `json:"activation_id"`
	TransactionID string          `json:"transaction_id"`
	APIKey        string          `json:"api_key"`
	Deadline      deadline        `json:"deadline"`
}

// environment is the environment of an activation, with the names that OpenWhisk's runtimes use.
func (r *runRequest) environment() map[string]string {
	env := map[string]string{
		"__OW_NAMESPACE": r.Namespace, "__OW_ACTION_NAME": r.ActionName, "__OW_ACTION_VERSION": r.ActionVersion,
		"__OW_ACTIVATION_ID": r.ActivationID, "__OW_TRANSACTION_ID": r.TransactionID, "__OW_API_KEY": r.APIKey,
	}
	if r.Deadline > 0 {
		env["__OW_DEADLINE"] = strconv.FormatInt(int64(r.Deadline), 10)
	}
	return env
}

// ofInvoker are the variables of OpenWhisk's that its invoker sends with /init.
var ofInvoker = []string{
	"__OW_NAMESPACE", "__OW_ACTION_NAME", "__OW_ACTION_VERSION", "__OW_ACTIVATION_ID", "__OW_TRANSACTION_ID",
	"__OW_DEADLINE", "__OW_API_KEY",
}

// taken is the environment of /init without the container's own variables: search paths, trusted certificates, and
// those that OpenWhisk sets itself. The log lists what was left out.
func (s *Server) taken(env map[string]string) map[string]string {
	out := maps.Clone(env)
	maps.DeleteFunc(out, func(name, _ string) bool { return reserved(name) })
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if reserved(name) {
			fmt.Fprintf(s.cfg.Stderr, "the variable %q of /init was not taken: it is the container's own\n", name)
		}
	}
	return out
}

func reserved(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "BASH_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS",
		"GOTRACEBACK":
		return true
	}
	own := strings.HasPrefix(name, "__OW_") && !slices.Contains(ofInvoker, name)
	return own || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "GLIBC_")
}

// setenv sets the variables that have a value.
func (s *Server) setenv(env map[string]string) error {
	for k, v := range env {
		if v == "" {
			continue
		}
		if err := s.cfg.Setenv(k, v); err != nil {
			return err
		}
	}
	return nil
}

// deadline is epoch milliseconds; the documents say a number, the invoker sends a string.
type deadline int64

func (d *deadline) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	*d = deadline(n)
	return err
}

func (s *Server) run(ctx context.Context, w http.ResponseWriter, body []byte) {
	var req runRequest
	if err := json.Unmarshal(body, &req); err != nil {
		answer(w, http.StatusBadRequest, failure("the request of /run is no JSON of the known form"))
		return
	}
	h, status, why := s.begin(&req)
	if why != "" {
		answer(w, status, failure(why))
		return
	}
	if len(req.Value) == 0 {
		req.Value = json.RawMessage("{}")
	}
	result, err := s.call(ctx, h, req)
	s.end() // before the answer: who has it finds the log whole
	if err != nil {
		answer(w, http.StatusOK, map[string]any{"error": disdel.AsError(err)}) // OpenWhisk's "application error"
		return
	}
	answer(w, http.StatusOK, result)
}

// begin reserves a place for an activation; usually there is only one. If several run at once they share the
// environment of /init.
func (s *Server) begin(req *runRequest) (h Handler, status int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.handler == nil:
		return nil, http.StatusInternalServerError, "no action defined yet"
	case s.busy >= s.cfg.Concurrency && s.cfg.Concurrency == 1:
		return nil, http.StatusConflict, "the action runs one activation at a time"
	case s.busy >= s.cfg.Concurrency:
		return nil, http.StatusConflict, fmt.Sprintf("the action runs %d activations at a time", s.cfg.Concurrency)
	}
	if s.cfg.Concurrency == 1 {
		if err := s.setenv(req.environment()); err != nil {
			return nil, http.StatusBadRequest, fmt.Sprintf("the environment cannot be set: %v", err)
		}
	}
	s.busy++
	return s.handler, 0, ""
}

func (s *Server) end() {
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if !silent {
		fmt.Fprintln(s.cfg.Stdout, Sentinel)
		fmt.Fprintln(s.cfg.Stderr, Sentinel)
	}
	s.mu.Lock()
	s.busy--
	s.mu.Unlock()
}

// call runs the handler under the activation's deadline and the memory watch. When memory runs out it answers without
// waiting for the handler: the answer must leave before the kernel kills the process.
func (s *Server) call(ctx context.Context, h Handler, req runRequest) (any, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if req.Deadline > 0 {
		var end context.CancelFunc
		ctx, end = context.WithDeadlineCause(ctx, time.UnixMilli(int64(req.Deadline)), outOfTime(s.task))
		defer end()
	}
	type outcome struct {
		result any
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { done <- o }()
		defer func() {
			if r := recover(); r != nil {
				s.tell(&req, fmt.Sprintf("panic: %v\n%s%s", r, origin(r), debug.Stack()))
				o = outcome{nil, panicked(s.task, r)}
			}
		}()
		o.result, o.err = h(ctx, req.Value)
	}()
	full := s.watch.begin(s.limit(req.Value))
	defer s.watch.end(full)
	select {
	case o := <-done:
		if o.err != nil && errors.Is(o.err, ctx.Err()) && context.Cause(ctx) != nil {
			o.err = context.Cause(ctx)
		}
		return o.result, o.err
	case resident := <-full.was:
		err := outOfMemory(s.task, resident, full.limit)
		stop(err)
		return nil, err
	}
}

// tell prints log lines of an activation. If several run at once, each line has the activation's id for the embedded
// platform.
func (s *Server) tell(req *runRequest, text string) {
	s.mu.Lock()
	shared := s.cfg.Concurrency > 1
	s.mu.Unlock()
	if shared && req.ActivationID != "" {
		mark := "\x00" + req.ActivationID + "\x00"
		text = mark + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+mark) + "\n"
	}
	fmt.Fprint(s.cfg.Stderr, text)
}

// panicked is the error of a panic. A panic with an error of disdel is that error: a disk of rows may fail in code that
// returns none.
func panicked(task disdel.Task, raised any) error {
	if err, ok := raised.(*disdel.Error); ok {
		return err
	}
	return &disdel.Error{
		Kind: disdel.Internal, Code: disdel.CodePanicked, Op: string(task),
		Msg:  fmt.Sprintf("the action panicked: %v", raised),
		Hint: "this is a defect of disdel; please report it with the activation's log",
	}
}

// origin is the stack of the goroutine in which a panic began, even if it was raised again in another one.
func origin(raised any) []byte {
	if p, ok := raised.(interface{ Stack() []byte }); ok {
		return p.Stack()
	}
	return nil
}

// limit is the configured one, else the request's own.
func (s *Server) limit(params json.RawMessage) disdel.Bytes {
	if s.cfg.Limit > 0 {
		return s.cfg.Limit
	}
	var p struct {
		Limit disdel.Bytes `json:"limitBytes"`
	}
	if json.Unmarshal(params, &p) != nil {
		return 0
	}
	return p.Limit
}

func outOfMemory(task disdel.Task, resident, limit disdel.Bytes) *disdel.Error {
	return &disdel.Error{
		Kind: disdel.OOM, Op: string(task), Msg: fmt.Sprintf("the action used %v of its %v", resident, limit),
	}
}

func outOfTime(task disdel.Task) *disdel.Error {
	return &disdel.Error{
		Kind: disdel.Timeout, Op: string(task), Msg: "the action's deadline has passed",
	}
}
