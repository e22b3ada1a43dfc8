package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// accepted is a file of the activations that were accepted and have no record on the disk yet: a line when one is
// accepted, a line when it has ended, with its record, and a line when that record is kept. A platform that was killed
// leaves it, and the next one on the same data answers for what is open in it, so that no client waits for a record
// that cannot come, and no answer is without its record. It is not synced: it outlives the process, which is what it is
// for, and costs an invocation a few microseconds. What a machine that lost power lost, its clients find out by their
// own patience.
type accepted struct {
	path string
	mu   sync.Mutex
	file *os.File
	open map[string][]byte // lines of what has no record on the disk, by id
	size int64
}

// acceptedLine is a line: the record that an activation gets if nothing more is heard of it, the record that it got, or
// the id of one whose record is kept.
type acceptedLine struct {
	Lost  *activation `json:"lost,omitempty"`
	Ended *activation `json:"ended,omitempty"`
	Filed string      `json:"filed,omitempty"`
}

// leftOpen is what an earlier platform left without a record on the disk, by start.
type leftOpen struct {
	ended []*activation // with the records that were answered
	lost  []*activation // of which nothing more was heard
}

// smallAccepted is up to where the file may grow before it is begun anew.
const smallAccepted = 1 << 20

// openAccepted opens the file in dir and returns what an earlier platform left open in it.
func openAccepted(dir string) (*accepted, leftOpen, error) {
	path := filepath.Join(dir, "accepted.jsonl")
	left, err := readAccepted(path)
	if err != nil {
		return nil, leftOpen{}, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, leftOpen{}, err
	}
	a := &accepted{path: path, file: f, open: map[string][]byte{}}
	if info, err := f.Stat(); err == nil {
		a.size = info.Size()
	}
	return a, left, nil
}

// readAccepted reads what is open in a file. A line that was cut off, or is none of ours, is passed over.
func readAccepted(path string) (leftOpen, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return leftOpen{}, nil
	}
	lost, ended := map[string]*activation{}, map[string]*activation{}
	for line := range bytes.Lines(data) {
		var v acceptedLine
		if json.Unmarshal(line, &v) != nil {
			continue
		}
		switch {
		case v.Lost.ours():
			lost[v.Lost.ActivationID] = v.Lost
		case v.Ended.ours():
			ended[v.Ended.ActivationID] = v.Ended
			delete(lost, v.Ended.ActivationID)
		default:
			delete(lost, v.Filed)
			delete(ended, v.Filed)
		}
	}
	return leftOpen{byStart(ended), byStart(lost)}, err
}

// ours tells whether a record that was read can be one that was written.
func (a *activation) ours() bool {
	return a != nil && activationID.MatchString(a.ActivationID) && a.Namespace != ""
}

func byStart(records map[string]*activation) []*activation {
	return slices.SortedFunc(maps.Values(records), func(a, b *activation) int { return cmp.Compare(a.Start, b.Start) })
}

// add is called before an activation is acknowledged.
func (a *accepted) add(lost *activation) error {
	if a == nil {
		return nil
	}
	line, err := json.Marshal(acceptedLine{Lost: lost})
	if err != nil {
		return err
	}
	return a.keep(lost.ActivationID, line)
}

// ended is called before an activation's record, whose JSON it is, is answered, if that is not on the disk yet.
func (a *accepted) ended(record *activation) error {
	data, err := record.bytes()
	if err != nil {
		return err
	}
	return a.keep(record.ActivationID, slices.Concat([]byte(`{"ended":`), data, []byte{'}'}))
}

// keep writes a line that stays open until its record is kept.
func (a *accepted) keep(id string, line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.write(append(line, '\n')); err != nil {
		return err
	}
	a.open[id] = line
	return nil
}

// filed is called when activations' records are kept. What cannot be written here is found out at the next start, which
// looks whether there is a record.
func (a *accepted) filed(ids ...string) {
	if a == nil || len(ids) == 0 {
		return
	}
	var lines []byte
	for _, id := range ids {
		lines = append(append(append(lines, `{"filed":"`...), id...), "\"}\n"...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		delete(a.open, id)
	}
	a.write(lines) //nolint:errcheck // see above
	if a.size > smallAccepted && a.size > 2*a.openSize() {
		a.restart()
	}
}

// write writes whole lines, at once.
func (a *accepted) write(lines []byte) error {
	n, err := a.file.Write(lines)
	a.size += int64(n)
	if err != nil && n > 0 {
		a.file.Write([]byte{'\n'}) //nolint:errcheck // what was cut off shall not spoil the next line
	}
	return err
}

func (a *accepted) openSize() (sum int64) {
	for _, line := range a.open {
		sum += int64(len(line))
	}
	return sum
}

// restart writes what is open into a file of its own, which then takes the place of the old one.
func (a *accepted) restart() {
	draft := a.path + "-new"
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return // the old one will do
	}
	next := &accepted{file: f}
	for _, line := range a.open {
		err = errors.Join(err, next.write(append(slices.Clone(line), '\n')))
	}
	if err == nil {
		err = os.Rename(draft, a.path)
	}
	if err != nil {
		f.Close()
		os.Remove(draft) //nolint:errcheck // a draft
		return
	}
	a.file.Close()
	a.file, a.size = f, next.size
}

// forget empties the file: all that was open in it has a record.
func (a *accepted) forget() error {
	a.size = 0
	return a.file.Truncate(0)
}

func (a *accepted) close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}

// lost is the record that an activation gets if the platform ends before it does.
func (run *running) lost() *activation {
	a := run.action
	result, _ := json.Marshal(map[string]string{"error": textLost}) // plain data
	none := int64(0)
	return &activation{
		Namespace: run.user.Name, Name: a.Name, Version: a.Version, Subject: run.user.Name, ActivationID: run.id,
		Cause: run.cause,
		Start: run.received.UnixMilli(), End: run.received.UnixMilli(), Duration: &none, Logs: []string{},
		Response:    response{Result: result, Status: statusInternal},
		Annotations: append(run.annotations(), kv("limits", a.Limits), kv("timeout", false)),
	}
}

// answerForLost files the records of activations that an earlier platform accepted and did not file.
func (p *Platform) answerForLost(left leftOpen) error {
	if p.accepted == nil {
		return nil
	}
	err := p.store.update(func(t tx) error {
		for _, a := range slices.Concat(left.ended, left.lost) {
			if t.has(a) {
				continue // it was killed between the record and the line
			}
			if err := p.store.fileIn(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = p.accepted.forget()
	}
	if len(left.lost) > 0 && err == nil {
		p.cfg.Logger.WithField("activations",
			len(left.lost)).Warn("an earlier platform was ended with activations under way: their records say so")
	}
	return err
}
