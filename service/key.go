package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// keyNote is what an idempotency key means.
type keyNote struct {
	Job    disdel.JobID `json:"job"`
	Digest string       `json:"digest"` // of what was asked for with it
}

// mostKey bounds the length of a key.
const mostKey = 200

// jobOfKey is the job that a request's key means where it was submitted before, or else the id that it is to be submitted
// with. Who submits first gives the key its job before anything else is done; a try that died before its job was
// acknowledged left an id that the next try takes. It returns Conflict for a key that means another job.
func (s *Service) jobOfKey(ctx context.Context, req Request) (disdel.JobID, *Run, error) {
	id := newJobID()
	if req.Key == "" {
		return id, nil, nil
	}
	if len(req.Key) > mostKey {
		return "", nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "submit job", Msg: fmt.Sprintf("the idempotency key is longer than %d bytes", mostKey),
		}
	}
	digest, err := digestOf(req)
	if err != nil {
		return "", nil, err
	}
	h, err := s.History(ctx)
	if err != nil {
		return "", nil, err
	}
	known, err := s.claimKey(ctx, h, req.Key, keyNote{id, digest})
	switch {
	case err != nil:
		return "", nil, err
	case known.Digest != digest:
		return "", nil, &disdel.Error{
			Kind: disdel.Conflict, Op: "submit job", Job: known.Job,
			Msg:  fmt.Sprintf("the idempotency key %.80q was used for another job, %s", req.Key, known.Job),
			Hint: "use another key, or submit the same job",
		}
	case known.Job == id:
		return id, nil, nil
	}
	run, err := s.Watch(s.open, string(known.Job))
	if disdel.KindOf(err) == disdel.NotFound {
		return known.Job, nil, nil
	}
	return known.Job, run, err
}

// claimKey writes what a key means, and returns what it means already where somebody was faster.
func (s *Service) claimKey(ctx context.Context, h *history.Store, key string, means keyNote) (keyNote, error) {
	sum := sha256.Sum256([]byte(s.whose() + "\x00" + key))
	n, err := h.Note(ctx, history.NoteKey, hex.EncodeToString(sum[:]))
	if disdel.KindOf(err) == disdel.NotFound {
		if n.Value, err = json.Marshal(means); err != nil {
			return means, err
		}
		if _, err = h.WriteNote(ctx, n); disdel.KindOf(err) != disdel.Conflict {
			return means, err
		}
		n, err = h.Note(ctx, n.Kind, n.Name)
	}
	if err == nil {
		err = json.Unmarshal(n.Value, &means)
	}
	return means, err
}

// digestOf is the same for requests that ask for the same.
func digestOf(req Request) (string, error) {
	data, err := json.Marshal(struct {
		Job      disdel.Job
		Planning *disdel.Planning
		Priority int
	}{req.Job, req.planning(), req.Priority})
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "submit job", Err: err}
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
