package tenant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Audit is the log of sign-ins, submissions, deletions, shares and tokens of a home: JSON, one line each. It has no
// token and no password. Several processes may write it. It is safe for concurrent use.
type Audit struct {
	path    string
	maximum int64 // bytes of a file

	mu sync.Mutex
}

// AuditFile is the name of the newest file of the log in the home folder. Older files end in .1, .2 and so on.
const AuditFile = "audit.jsonl"

// Bounds of the log.
const (
	mostAudited = 10 << 20 // bytes of a file
	keptAudits  = 5        // older files
)

// NewAudit returns the log of a home. It makes no file before the first line.
func NewAudit(home string) *Audit {
	return &Audit{path: filepath.Join(home, AuditFile), maximum: mostAudited}
}

// The events of an audit log.
const (
	AuditSignIn     = "signIn"     // a tenant's first request from an address in an hour, or a sign-in on the page
	AuditRefused    = "refused"    // a request without the right token or role
	AuditSubmission = "submission" // of a job; also a resume
	AuditDeletion   = "deletion"
	AuditShare      = "share"
	AuditToken      = "token" // one was created or revoked
	AuditChange     = "change"
)

// AuditLine is a line of the log. Fields that do not fit the event are empty.
type AuditLine struct {
	Time   time.Time    `json:"time"`
	Event  string       `json:"event"`
	Tenant string       `json:"tenant,omitempty"` // "operator": who runs the server
	Role   Role         `json:"role,omitempty"`
	From   string       `json:"from,omitempty"` // address of the client
	Method string       `json:"method,omitempty"`
	Path   string       `json:"path,omitempty"` // without its query
	Status int          `json:"status,omitempty"`
	Job    disdel.JobID `json:"job,omitempty"`   // that was submitted
	Token  string       `json:"token,omitempty"` // its name, or the start of its hash
	What   string       `json:"what,omitempty"`
}

// Write appends a line with the time of now. It returns Unavailable if the file cannot be written.
func (a *Audit) Write(line AuditLine) error {
	line.Time = time.Now().UTC()
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // it would make a path six times as long
	if err := to.Encode(line); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.append(text.Bytes()); err != nil {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "write audit log", Err: files.Plain(err),
			Hint: "make room for " + a.path + ", and let disdel write it",
		}
	}
	return nil
}

// append writes one line at once, so that lines of several processes do not mix.
func (a *Audit) append(line []byte) error {
	if info, err := os.Stat(a.path); err == nil && info.Size()+int64(len(line)) > a.maximum {
		if err := a.rotate(int64(len(line))); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// rotate renames the files, and drops the oldest. It does nothing while another process does it.
func (a *Audit) rotate(more int64) error {
	lock, err := files.Lock(a.path + ".lock")
	if files.Held(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer files.Unlock(lock) //nolint:errcheck // the next process locks it again
	if info, err := os.Stat(a.path); err != nil || info.Size()+more <= a.maximum {
		return nil //nolint:nilerr // another process was faster
	}
	for n := keptAudits; n > 0; n-- {
		from := a.path
		if n > 1 {
			from = fmt.Sprintf("%s.%d", a.path, n-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", a.path, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
