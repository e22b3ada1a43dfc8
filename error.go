package disdel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Kind says what class of thing went wrong. It is itself an error, so that errors.Is(err, disdel.OOM) works.
type Kind uint8

// The kinds, in no order of severity. The zero value is not an error's kind.
const (
	UnknownKind Kind = iota
	Invalid          // the request is wrong; the user mends it
	NotFound         // what was named does not exist
	Denied           // not authenticated or not authorised
	Conflict         // exists already, or changed meanwhile
	OverLimit        // does not fit a limit of the platform or a budget of the user
	OOM              // an action used more memory than its limit
	Timeout          // an action or a job used more time than its limit
	Lost             // an activation or its record vanished
	Unavailable      // a back end cannot be reached, or asks to come later
	Corrupt          // data or an update is damaged
	Diverged         // training produced a loss or weights that are not finite
	Crashed          // the action's process died or answered nonsense
	Canceled         // somebody stopped it
	Internal         // a defect of disdel or of the platform
	NoSpace          // a disk is full
)

var kindNames = [...]string{
	"unknown", "invalid", "notFound", "denied", "conflict", "overLimit", "outOfMemory", "timeout", "lost",
	"unavailable", "corrupt", "diverged", "crashed", "canceled", "internal", "noSpace",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Error makes a Kind usable as an errors.Is target.
func (k Kind) Error() string { return k.String() }

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name; an unknown name becomes UnknownKind, so that records of newer versions stay
// readable.
func (k *Kind) UnmarshalText(text []byte) error {
	*k = UnknownKind
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
		}
	}
	return nil
}

// Retryable says whether the same request may succeed later without being changed.
func (k Kind) Retryable() bool { return k == Lost || k == Unavailable }

// Code tells errors of one kind apart where something is decided by the difference, so that nobody has to look for
// words in a message. "" is the code of most errors.
type Code string

// The codes. They cross the action border as kinds do.
const (
	CodeUnreachable     Code = "unreachable"     // OpenWhisk did not answer for as long as it is waited for
	CodeQuotaMinute     Code = "quotaMinute"     // the namespace's invocations of this minute are used up
	CodeQuotaConcurrent Code = "quotaConcurrent" // as many activations as the namespace may have are in flight
	CodeNeverServed     Code = "neverServed"     // an invocation waited in OpenWhisk's queue for as long as is waited for
	CodeImageMissing    Code = "imageMissing"    // the container image cannot be pulled
	CodeInitTimeout     Code = "initTimeout"     // a process took no /init before the action's timeout had passed
	CodeInitDied        Code = "initDied"        // a process ended before it took /init
	CodePanicked        Code = "panicked"        // the action's handler panicked
	// an update that was pushed, or a step's that was sent, is gone from the store, or damaged
	CodeLostUpdate Code = "lostUpdate"
	// the weights that a round starts from are gone from the store, or damaged
	CodeLostReference Code = "lostReference"
	CodeDeadline      Code = "deadline"   // the job's own deadline has passed
	CodeOverBudget    Code = "overBudget" // the job's next round does not fit its resources.maxCost
	// the machine that an action ran on has no accelerator that it may use; kind Unavailable, for another one may have
	CodeNoDevice Code = "noDevice"
	// a store that the job needs did not answer, or refused it: it ended, and a resume goes on once the store is there
	CodeStoreGone Code = "storeGone"
	// the job's weights or a checkpoint could not be written: it ended, and a resume continues at the newest checkpoint
	CodeUnkept       Code = "unkept"
	CodeNoJob        Code = "noJob"        // the history has no job by this name
	CodeUnreadable   Code = "unreadable"   // the job's record is damaged, or of another version; it can be deleted
	CodeSucceeded    Code = "succeeded"    // a job that has succeeded cannot be continued
	CodeNoCheckpoint Code = "noCheckpoint" // the storage has none of the checkpoints that a job's record tells of
	CodeElsewhere    Code = "elsewhere"    // a job is to be resumed at another place than the one where it ran
	CodeTooManyJobs  Code = "tooManyJobs"  // the tenant has as many unfinished jobs as it may have
	// an accelerator's memory was too little, not the action's; kind OOM
	CodeDeviceMemory Code = "deviceMemory"
)

// Error is the error of every exported function. Errors cross the border of an action as JSON: all fields survive that,
// the cause as text.
type Error struct {
	Kind       Kind
	Code       Code   // "" for most
	Op         string // what was being done: "read update"
	Job        JobID
	Activation ActivationID
	Invocation string    // that it is of, where it ended a job: "round 0/train/1/attempt 2"
	Subject    *UpdateID // the update, reference or state that it is about; nil where it is about none
	Path       string    // the field of the job file with whose dotted path and ": " Msg begins; "" for most
	Msg        string    // what is wrong, lower case, no full stop
	Hint       string    // what to do next; where it is a command, one that works
	// Changes are the changes of the job file that Hint names. Each alone is enough; its settings are PATH=VALUE as
	// --set takes them.
	Changes    [][]string
	NotRetried string // why an invocation that failed was not tried again; Msg ends with it
	Err        error  // the cause, may be nil
}

// NotTriedAgain stands before NotRetried where a failure is told.
const NotTriedAgain = "not tried again: "

// Error prints "op: msg: cause"; the hint is for the user interface.
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, p := range []string{e.Op, e.Msg} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	if len(parts) == 0 {
		return e.Kind.String()
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the kind and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

type errorJSON struct {
	Kind       Kind         `json:"kind"`
	Code       Code         `json:"code,omitempty"`
	Op         string       `json:"op,omitempty"`
	Job        JobID        `json:"job,omitempty"`
	Activation ActivationID `json:"activation,omitempty"`
	Invocation string       `json:"invocation,omitempty"`
	Subject    *UpdateID    `json:"subject,omitempty"`
	Msg        string       `json:"message"`
	Hint       string       `json:"hint,omitempty"`
	Changes    [][]string   `json:"changes,omitempty"`
	NotRetried string       `json:"notRetried,omitempty"`
	Cause      string       `json:"cause,omitempty"`
}

// MarshalJSON writes the error; its cause becomes text.
func (e *Error) MarshalJSON() ([]byte, error) {
	out := errorJSON{
		Kind: e.Kind, Code: e.Code, Op: e.Op, Job: e.Job, Activation: e.Activation, Invocation: e.Invocation,
		Subject: e.Subject, Msg: e.Msg, Hint: e.Hint, Changes: e.Changes,
		NotRetried: e.NotRetried,
	}
	if e.Err != nil {
		out.Cause = e.Err.Error()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Error) UnmarshalJSON(data []byte) error {
	var in errorJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*e = Error{
		Kind: in.Kind, Code: in.Code, Op: in.Op, Job: in.Job, Activation: in.Activation, Invocation: in.Invocation,
		Subject: in.Subject, Msg: in.Msg, Hint: in.Hint, Changes: in.Changes,
		NotRetried: in.NotRetried,
	}
	if in.Cause != "" {
		e.Err = errors.New(in.Cause)
	}
	return nil
}

// KindOf returns the kind of the outermost Error in err's tree, or Internal if there is none, or UnknownKind for nil.
func KindOf(err error) Kind {
	if err == nil {
		return UnknownKind
	}
	var e *Error
	if errors.As(err, &e) && e.Kind != UnknownKind {
		return e.Kind
	}
	if errors.Is(err, Invalid) {
		return Invalid
	}
	return Internal
}

// AsError returns the outermost Error in err's tree, or wraps err as Internal.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Msg: err.Error()}
}

// CheckVersion returns nil for a document that this version reads, and Conflict for one of another version, which names
// both. Nothing may change such a document: the version that wrote it still needs it.
func CheckVersion(op, document, version string) error {
	if version == APIVersion {
		return nil
	}
	return &Error{
		Kind: Conflict, Code: CodeUnreadable, Op: op,
		Msg: fmt.Sprintf("%s was written by another version of disdel: its apiVersion is %.40q, and this program reads %s",
			document, version, APIVersion),
		Hint: "use the version of disdel that wrote it, or restore the copy of the home from before the upgrade",
	}
}

// Fault is one thing wrong with a request, with its place in the file.
type Fault struct {
	Path   string `json:"path"`           // dotted path of the field: training.batchSize
	Line   int    `json:"line,omitempty"` // 1-based; 0: the fault is of a --set or of the whole file
	Column int    `json:"column,omitempty"`
	Msg    string `json:"message"`
	Hint   string `json:"hint,omitempty"`
}

// Faults is every thing wrong with a request, in file order. It is an error of kind Invalid.
type Faults struct {
	File   string  `json:"file,omitempty"`
	Faults []Fault `json:"faults"`
}

// Error prints one line per fault as FILE:LINE:COLUMN: PATH: MESSAGE.
func (f *Faults) Error() string {
	lines := make([]string, len(f.Faults))
	for i, v := range f.Faults {
		place := f.File
		if v.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", f.File, v.Line, v.Column)
		}
		lines[i] = strings.TrimPrefix(fmt.Sprintf("%s: %s: %s", place, v.Path, v.Msg), ": ")
		if v.Hint != "" {
			lines[i] += "; " + v.Hint
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, Invalid) true.
func (f *Faults) Unwrap() error { return Invalid }

// hidden stands where a message leaves out who signs in at an address, and with what.
const hidden = "xxxxx"

// Redacted is an address as messages, logs and records may show it: without user and password, also where it is no URL,
// as with a password that was not encoded. A message must not have the cause that url.Parse gives either: that repeats
// the address.
func Redacted(address string) string {
	u, err := url.Parse(address)
	if err == nil && u.User == nil && u.Host == "" && u.Opaque == "" {
		return address // a folder may have an @ in its name
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		if err != nil { // the port of a URL without a host may be a password
			return hidden
		}
		return address
	}
	scheme, _, found := strings.Cut(address[:at], "://")
	if !found {
		return hidden + address[at:]
	}
	return scheme + "://" + hidden + address[at:]
}
