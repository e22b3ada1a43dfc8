package rig

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/disdel/disdel/platform/local"
)

// Platform is a `disdel platform up` with a home of its own.
type Platform struct {
	Program
	Host, Key string // as its clients need them
	PID       int
}

// StartPlatform starts a platform in the background. args are further flags of `disdel platform up`.
func StartPlatform(program string, args ...string) (*Platform, error) {
	home, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return nil, err
	}
	p := &Platform{Program: Program{Path: program, Home: home}}
	up := slices.Concat([]string{"platform", "up", "--detach", "--port", "0"}, args)
	if _, err := p.Run(nil, up...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	properties := local.ReadProperties(local.PropertiesFile(home))
	p.Host, p.Key = properties["APIHOST"], properties["AUTH"]
	status, err := p.Status()
	p.PID = status.PID
	return p, err
}

// PlatformStatus is what `disdel platform status` says.
type PlatformStatus struct {
	PID  int        `json:"pid"`
	Pool local.Pool `json:"pool"`
}

// Status asks for the platform's status.
func (p *Platform) Status() (status PlatformStatus, err error) {
	out, err := p.Run(nil, "platform", "status", "-o", "json")
	if err == nil {
		err = json.Unmarshal(out, &status)
	}
	return status, err
}

// Close ends the platform and removes its home.
func (p *Platform) Close() error {
	_, err := p.Run(nil, "platform", "down")
	return errors.Join(err, os.RemoveAll(p.Home))
}

// Send makes a request below the default namespace and returns the status of its answer.
func (p *Platform) Send(ctx context.Context, by *http.Client, method, path, body string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, p.Host+"/api/v1/namespaces/_/"+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	user, key, _ := strings.Cut(p.Key, ":")
	req.SetBasicAuth(user, key)
	req.Header.Set("Content-Type", "application/json")
	res, err := by.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body) // to its end, so that the connection serves again
	return res.StatusCode, errors.Join(err, res.Body.Close())
}
