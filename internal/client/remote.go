package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/apitypes"
)

// Server is the address of a server, with the token of the client.
type Server struct {
	URL   string
	Token string // says who the client is

	// Clear allows to send the token to another machine without encryption.
	Clear bool
}

// Remote returns a Client of a server. It returns Invalid for a wrong address, and Denied if the token would reach
// another machine unencrypted.
func Remote(at Server) (Client, error) {
	u, err := url.Parse(at.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return Client{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "find server", Msg: fmt.Sprintf("%.200q is no address of a server", at.URL),
			Hint: "write https://HOST:PORT, without a user",
		}
	}
	if u.Scheme == "http" && !addresses.Loopback(u.Hostname()) && !at.Clear {
		return Client{}, &disdel.Error{
			Kind: disdel.Denied, Op: "find server", Msg: "the token would reach " + at.URL + " in the clear",
			Hint: "use https://, or ssh -L 7070:127.0.0.1:7070 HOST and http://127.0.0.1:7070",
		}
	}
	r := &remote{base: strings.TrimSuffix(at.URL, "/"), token: at.Token, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // with the token? no
	}}
	return Client{
		Jobs: remoteJobs{r}, Records: remoteRecords{r}, Models: remoteModels{r}, Data: remoteData{r}, Shares: remoteShares{r},
	}, nil
}

// remote is the connection to a server.
type remote struct {
	base, token string
	http        *http.Client
}

// request is a request to a server.
type request struct {
	method string
	path   []string // parts of the path behind /api/v1
	query  url.Values
	body   any         // JSON; nil: none
	raw    io.Reader   // instead of body
	size   int64       // of raw, if it cannot be found out from the reader; 0: unknown
	header http.Header // beside those of every request
}

// send makes a request; the caller closes the body of the answer. It returns the error of the server, and Unavailable
// if there is no answer.
func (r *remote) send(ctx context.Context, q request) (*http.Response, error) {
	body, kind := q.raw, ""
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "ask server", Err: err}
		}
		body, kind = bytes.NewReader(text), "application/json"
	}
	var address strings.Builder
	address.WriteString(r.base + "/api/v1")
	for _, part := range q.path {
		address.WriteString("/" + url.PathEscape(part))
	}
	if len(q.query) > 0 {
		address.WriteString("?" + q.query.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, q.method, address.String(), body)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "ask server", Err: err}
	}
	if q.size > 0 {
		req.ContentLength = q.size
	}
	maps.Copy(req.Header, q.header)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	res, err := r.http.Do(req)
	if err != nil {
		return nil, r.silent(ctx, err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		defer res.Body.Close()
		return nil, r.failure(res)
	}
	return res, nil
}

// silent is the error if a server did not answer, or ctx ended.
func (r *remote) silent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &disdel.Error{Kind: disdel.KindOf(ctx.Err()), Op: "ask server", Err: context.Cause(ctx)}
	}
	var why *url.Error
	if errors.As(err, &why) {
		err = why.Err
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "ask server", Msg: r.base + " does not answer", Err: err,
		Hint: "disdel serve starts one; disdel context list shows which is meant",
	}
}

// mostFailure bounds the length of an answer with an error.
const mostFailure = 4 << 20

// failure reads the error of an answer.
func (r *remote) failure(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, mostFailure))
	var f apitypes.Failure
	if err != nil || json.Unmarshal(text, &f) != nil || f.Error == nil {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "ask server", Msg: fmt.Sprintf("%s answers %s, and is no disdel", r.base, res.Status),
			Hint: "disdel context list",
		}
	}
	if res.StatusCode == http.StatusUnauthorized {
		f.Error.Hint = "put the token into DISDEL_TOKEN, or keep it with disdel context add NAME --server " + r.base
	}
	if len(f.Faults) > 0 {
		return &disdel.Faults{File: f.File, Faults: f.Faults}
	}
	return f.Error
}

// ask makes a request and reads its answer into a value; nil: it drops the answer.
func (r *remote) ask(ctx context.Context, q request, into any) error {
	res, err := r.send(ctx, q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return r.silent(ctx, err)
	}
	if into == nil {
		return nil
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = text
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "read answer", Msg: strings.Join(q.path, "/"), Err: err}
	}
	return nil
}

// answer is what a server answers to a request.
func answer[T any](ctx context.Context, r *remote, q request) (out T, err error) {
	err = r.ask(ctx, q, &out)
	return out, err
}

// get is what a server has at a path.
func get[T any](ctx context.Context, r *remote, path ...string) (T, error) {
	return answer[T](ctx, r, request{method: http.MethodGet, path: path})
}
