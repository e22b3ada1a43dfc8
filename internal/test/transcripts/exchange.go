package transcripts

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
)

// Exchange is a request and what the real OpenWhisk answered.
type Exchange struct {
	Name   string `json:"name"`
	Method string `json:"method"`
	// Path may have the name of an earlier exchange in braces, which stands for the activation that this one's answer
	// was about.
	Path    string            `json:"path"`
	Key     string            `json:"key,omitempty"` // guest: the platform's own; else what is sent as user and password
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"` // <N bytes>: one of that size, which was not kept
	Answer  Answer            `json:"answer"`
}

// Answer is what clients go by. JSON is settled: what differs from run to run has a word in its place. Of a body that
// is too large to keep, Keys are its fields.
type Answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	JSON    json.RawMessage   `json:"json,omitempty"`
	Text    *string           `json:"text,omitempty"`
	Keys    []string          `json:"keys,omitempty"`
}

// recorded are the exchanges, one a line; TestTheReducedTranscriptsAreWhatWasRecorded writes them.
//
//go:embed recorded.jsonl
var recorded []byte

// Load reads the exchanges, in the order in which they depend on each other.
func Load() ([]Exchange, error) {
	var out []Exchange
	err := eachLine(bytes.NewReader(recorded), func(line []byte) error {
		var one Exchange
		err := json.Unmarshal(line, &one)
		out = append(out, one)
		return err
	})
	return out, err
}

// Write writes exchanges as Load reads them.
func Write(w io.Writer, list []Exchange) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachLine reads lines of any length.
func eachLine(r io.Reader, f func(line []byte) error) error {
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := f(line); err != nil {
				return fmt.Errorf("%.80s: %w", line, err)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// record is a line of the whole record, as whoever recorded it wrote it.
type record struct {
	Name    string
	Request struct {
		Method, Path string
		Body         json.RawMessage
		Headers      map[string]string
		Auth         string
	}
	Status  int
	Headers map[string]string
	JSON    json.RawMessage
	Text    *string
}

// Reduce makes exchanges of a whole record: facts alone, with names in the place of ids.
func Reduce(r io.Reader) ([]Exchange, error) {
	var out []Exchange
	names := map[string]string{} // of the exchanges that activations come from
	err := eachLine(r, func(line []byte) error {
		var one record
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		got, err := one.reduced(names)
		out = append(out, got)
		return err
	})
	return out, err
}

var activationPattern = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

func (v *record) reduced(names map[string]string) (Exchange, error) {
	out := Exchange{Name: v.Name, Method: v.Request.Method, Key: v.Request.Auth, Headers: v.Request.Headers}
	out.Path = activationPattern.ReplaceAllStringFunc(v.Request.Path, func(id string) string {
		if name := names[id]; name != "" {
			return "{" + name + "}"
		}
		return id
	})
	isJSON := false
	out.Body, isJSON = v.body()
	if isJSON {
		headers := map[string]string{"Content-Type": "application/json"}
		maps.Copy(headers, out.Headers)
		out.Headers = headers
	}
	var about struct{ ActivationID string }
	if json.Unmarshal(v.JSON, &about) == nil && about.ActivationID != "" && names[about.ActivationID] == "" {
		names[about.ActivationID] = v.Name
	}
	var err error
	out.Answer, err = v.answer()
	return out, err
}

// body is what was sent, and whether it was said to be JSON. A string was sent as it stands: it is no JSON, or of
// another type.
func (v *record) body() (text string, isJSON bool) {
	sent := strings.TrimSpace(string(v.Request.Body))
	switch {
	case sent == "" || sent == "null":
		return "", false
	case json.Unmarshal([]byte(sent), &text) == nil:
		return text, largePattern.MatchString(text)
	default:
		return sent, sent[0] == '{' || sent[0] == '['
	}
}

func (v *record) answer() (Answer, error) {
	out := Answer{Status: v.Status, Text: v.Text, Headers: map[string]string{}}
	for _, name := range heard {
		for k, value := range v.Headers {
			if strings.EqualFold(k, name) {
				out.Headers[name] = plainType(value)
			}
		}
	}
	if out.Text != nil || len(v.JSON) == 0 || string(v.JSON) == "null" {
		return out, nil
	}
	var large struct {
		Size *int `json:"<large>"`
		Keys []string
	}
	if json.Unmarshal(v.JSON, &large) == nil && large.Size != nil {
		out.Keys = large.Keys
		return out, nil
	}
	var body any
	if err := json.Unmarshal(v.JSON, &body); err != nil {
		return out, err
	}
	var err error
	out.JSON, err = json.Marshal(settled("", body))
	return out, err
}
