package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// accepted is a file of the activations that were accepted and have no record yet: a line when one is accepted, a line
// when its record is kept. A platform that was killed leaves it, and the next one on the same data answers for what is
// open in it, so that no client waits for a record that cannot come. It is not synced: it outlives the process, which
// is what it is for, and costs an invocation a few microseconds. What a machine that lost power lost, its clients find
// out by their own patience.
type accepted struct {
	path string
	mu   sync.Mutex
	file *os.File
	open map[string]json.RawMessage // lines of what has no record, by id
	size int64
}

// acceptedLine is a line: the record that an activation gets if nothing more is heard of it, or the id of one that has
// its own.
type acceptedLine struct {
	Lost  *activation `json:"lost,omitempty"`
	Filed string      `json:"filed,omitempty"`
}

// smallAccepted is up to where the file may grow before it is begun anew.
const smallAccepted = 1 << 20

// openAccepted opens the file in dir and returns what an earlier platform left open in it.
func openAccepted(dir string) (*accepted, []*activation, error) {
	path := filepath.Join(dir, "accepted.jsonl")
	left, err := readAccepted(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	a := &accepted{path: path, file: f, open: map[string]json.RawMessage{}}
	if info, err := f.Stat(); err == nil {
		a.size = info.Size()
	}
	return a, left, nil
}

// readAccepted reads what is open in a file. A line that was cut off, or is none of ours, is passed over.
func readAccepted(path string) ([]*activation, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	open := map[string]*activation{}
	for line := range bytes.Lines(data) {
		var v acceptedLine
		if json.Unmarshal(line, &v) != nil {
			continue
		}
		delete(open, v.Filed)
		if v.Lost != nil && activationID.MatchString(v.Lost.ActivationID) && v.Lost.Namespace != "" {
			open[v.Lost.ActivationID] = v.Lost
		}
	}
	return slices.SortedFunc(maps.Values(open), func(a, b *activation) int { return int(a.Start - b.Start) }), err
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
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.write(line); err != nil {
		return err
	}
	a.open[lost.ActivationID] = line
	return nil
}

// filed is called when an activation's record is kept. What cannot be written here is found out at the next start,
// which looks whether there is a record.
func (a *accepted) filed(id string) {
	if a == nil {
		return
	}
	line, _ := json.Marshal(acceptedLine{Filed: id}) // plain data
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
	a.write(line) //nolint:errcheck // see above
	if a.size > smallAccepted && a.size > 2*a.openSize() {
		a.restart()
	}
}

func (a *accepted) write(line []byte) error {
	n, err := a.file.Write(append(line, '\n'))
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
		err = errors.Join(err, next.write(slices.Clone(line)))
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

// answerForLost files the records of activations that an earlier platform accepted and never ended.
func (p *Platform) answerForLost(left []*activation) error {
	if p.accepted == nil {
		return nil
	}
	err := p.store.update(func(t tx) error {
		for _, a := range left {
			if t.of(records).Get([]byte(a.Namespace+"\x00"+a.ActivationID)) != nil {
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
	if len(left) > 0 && err == nil {
		p.cfg.Logger.WithField("activations",
			len(left)).Warn("an earlier platform was ended with activations under way: their records say so")
	}
	return err
}
