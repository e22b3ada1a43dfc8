package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
)

// statuses are the HTTP statuses of the kinds of errors.
var statuses = map[disdel.Kind]int{
	disdel.Invalid: http.StatusBadRequest, disdel.NotFound: http.StatusNotFound, disdel.Denied: http.StatusForbidden,
	disdel.Conflict: http.StatusConflict, disdel.OverLimit: http.StatusUnprocessableEntity,
	disdel.Unavailable: http.StatusServiceUnavailable, disdel.NoSpace: http.StatusInsufficientStorage,
	disdel.Timeout: http.StatusGatewayTimeout, disdel.Corrupt: http.StatusUnprocessableEntity,
}

func fail(w http.ResponseWriter, err error) {
	status, known := statuses[disdel.KindOf(err)]
	switch {
	case !known:
		status = http.StatusInternalServerError
	case disdel.AsError(err).Code == disdel.CodeTooManyJobs:
		status = http.StatusTooManyRequests
	}
	failAs(w, status, err)
}

func failAs(w http.ResponseWriter, status int, err error) {
	out := apitypes.Failure{Error: disdel.AsError(err)}
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		out.Error = &disdel.Error{Kind: disdel.Invalid, Op: "read job", Msg: err.Error()}
		out.File, out.Faults = faults.File, faults.Faults
	}
	write(w, status, out)
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the client went away
}

func invalid(msg string, err error) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "read request", Msg: msg, Err: err}
}

// read reads the body of a request. An empty body changes nothing.
func (c *call) read(into any) error {
	d := json.NewDecoder(c.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var long *http.MaxBytesError
	switch {
	case err == nil, errors.As(err, &long):
		return err
	case c.ContentLength == 0:
		return nil
	default:
		return invalid("the body is no JSON of this request", err)
	}
}
