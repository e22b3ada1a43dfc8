package local

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
)

// tenantsPath lists, adds and removes namespaces, for requests with the platform's own key.
const tenantsPath = "/disdel/namespaces"

// Tenant is a namespace of a platform.
type Tenant = platform.Namespace

// mostAsked limits the size of a request.
const mostAsked = 64 << 10

// failure is an error in an answer.
type failure struct {
	Kind disdel.Kind `json:"kind"`
	Msg  string      `json:"error"`
}

// serveTenants answers requests for tenantsPath.
func (f *Front) serveTenants(w http.ResponseWriter, r *http.Request) {
	name, key, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(name+":"+key), []byte(f.Platform.AuthKey())) != 1 {
		w.Header().Set("Connection", "close")
		reply(w, http.StatusUnauthorized, failure{disdel.Denied, "namespaces are changed with the platform's own key alone"})
		return
	}
	rest, err := url.PathUnescape(strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), tenantsPath), "/"))
	var out any
	switch {
	case err != nil:
	case r.Method == http.MethodGet && rest == "":
		out = f.Platform.Namespaces()
	case r.Method == http.MethodPost && rest == "":
		var asked Tenant
		if err = json.NewDecoder(io.LimitReader(r.Body, mostAsked)).Decode(&asked); err == nil {
			out, err = f.Platform.PutNamespace(asked, false)
		}
	case r.Method == http.MethodDelete && rest != "":
		out, err = struct{}{}, f.Platform.RemoveNamespace(rest)
	default:
		err = &disdel.Error{Kind: disdel.NotFound, Msg: "there is no such request"}
	}
	if err != nil {
		reply(w, http.StatusBadRequest, failureOf(err))
		return
	}
	reply(w, http.StatusOK, out)
}

func failureOf(err error) failure {
	var e *disdel.Error
	if errors.As(err, &e) {
		return failure{e.Kind, e.Msg}
	}
	return failure{disdel.Invalid, err.Error()}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the client went away
}

// Tenants lists the namespaces of the platform that runs in a home.
func Tenants(ctx context.Context, home string, s State) ([]Tenant, error) {
	var out []Tenant
	err := tenantsCall{http.MethodGet, "", nil, &out}.ask(ctx, home, s)
	return out, err
}

// AddTenant adds a namespace and returns it with its key. It returns Conflict if the name exists.
func AddTenant(ctx context.Context, home string, s State, n Tenant) (Tenant, error) {
	var out Tenant
	err := tenantsCall{http.MethodPost, "", n, &out}.ask(ctx, home, s)
	return out, err
}

// RemoveTenant removes a namespace's key. It returns NotFound for an unknown namespace.
func RemoveTenant(ctx context.Context, home string, s State, name string) error {
	return tenantsCall{http.MethodDelete, "/" + url.PathEscape(name), nil, &struct{}{}}.ask(ctx, home, s)
}

// tenantsCall is a request to the running platform, and the place of its answer.
type tenantsCall struct {
	method, path string
	body, out    any
}

// ask sends the request with the home's own key.
func (t tenantsCall) ask(ctx context.Context, home string, s State) error {
	silent := func(err error) error {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "ask platform", Err: err, Hint: "disdel platform status"}
	}
	data, err := json.Marshal(t.body)
	if err != nil {
		return silent(err)
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, t.method, s.Address+tenantsPath+t.path, bytes.NewReader(data))
	if err != nil {
		return silent(err)
	}
	user, key, _ := strings.Cut(ReadProperties(PropertiesFile(home))["AUTH"], ":")
	req.SetBasicAuth(user, key)
	// a proxy of the environment is not for this machine
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return silent(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		if err := json.NewDecoder(res.Body).Decode(t.out); err != nil {
			return silent(err)
		}
		return nil
	}
	var refusal failure
	if err := json.NewDecoder(io.LimitReader(res.Body, mostAsked)).Decode(&refusal); err != nil || refusal.Msg == "" {
		return silent(fmt.Errorf("it answers %s", res.Status))
	}
	return &disdel.Error{Kind: refusal.Kind, Op: "change namespaces", Msg: refusal.Msg}
}
