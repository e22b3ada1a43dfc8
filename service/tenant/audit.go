package tenant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// AuditQuery chooses lines of an audit log. Its zero value chooses all.
type AuditQuery struct {
	Tenant *string // only lines of this tenant; nil: of all, also lines without a tenant
	Event  string  // only lines of this event; "": of all
	Words  string  // only lines with each of these words, in any field and case
	Limit  int     // at most so many lines; 0: all
}

// matches reports whether the query chooses a line. text is the line as the file has it.
func (q *AuditQuery) matches(line *AuditLine, text []byte) bool {
	if q.Tenant != nil && line.Tenant != *q.Tenant || q.Event != "" && line.Event != q.Event {
		return false
	}
	for word := range strings.FieldsSeq(strings.ToLower(q.Words)) {
		if !bytes.Contains(bytes.ToLower(text), []byte(word)) {
			return false
		}
	}
	return true
}

// Read returns the chosen lines, the newest first. It skips lines that are no JSON. It returns Unavailable if a file
// cannot be read.
func (a *Audit) Read(ctx context.Context, q AuditQuery) (list []AuditLine, err error) {
	add := func(text []byte) bool {
		var line AuditLine
		if json.Unmarshal(text, &line) == nil && q.matches(&line, text) {
			list = append(list, line)
		}
		return ctx.Err() == nil && (q.Limit == 0 || len(list) < q.Limit)
	}
	for n := range keptAudits + 1 {
		path := a.path
		if n > 0 {
			path = fmt.Sprintf("%s.%d", a.path, n)
		}
		more, err := readBackwards(path, add)
		switch {
		case err != nil:
			return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "read audit log", Err: files.Plain(err)}
		case !more:
			return list, ctx.Err()
		}
	}
	return list, ctx.Err()
}

// backwardBlock is how many bytes are read at once. A line is far shorter.
const backwardBlock = 64 << 10

// readBackwards gives the lines of a file to next, the last first, until next returns false. A missing file is empty.
func readBackwards(path string, next func(line []byte) bool) (more bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	var rest []byte // the end of a line that begins in an earlier block
	for at > 0 {
		size := min(at, backwardBlock)
		at -= size
		block := make([]byte, size, int(size)+len(rest))
		if _, err := f.ReadAt(block, at); err != nil {
			return false, err
		}
		block = append(block, rest...)
		for {
			end := bytes.LastIndexByte(block, '\n')
			if end < 0 {
				break
			}
			if line := block[end+1:]; len(line) > 0 && !next(line) {
				return false, nil
			}
			block = block[:end]
		}
		rest = block
	}
	return len(rest) == 0 || next(rest), nil
}
