package secrets

import (
	"errors"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/disdel/disdel"
)

// service is what all secrets of disdel lie under.
const service = "disdel"

// patience is how long a keyring may take to answer. A locked one asks for its password on a screen, where nobody may
// be.
const patience = 2 * time.Minute

// SaveToKeyring saves a text under a name, over an earlier one. It returns Unavailable without a keyring.
func SaveToKeyring(name, text string) error {
	_, err := answered(func() (string, error) { return "", keyring.Set(service, name, text) })
	return wrap(err, "keep secrets", name)
}

// ReadFromKeyring is the text under a name. It returns NotFound, and Unavailable without a keyring.
func ReadFromKeyring(name string) (string, error) {
	text, err := answered(func() (string, error) { return keyring.Get(service, name) })
	return text, wrap(err, "read secrets", name)
}

// DeleteFromKeyring deletes the text under a name; a missing one is no error. It returns Unavailable without a keyring.
func DeleteFromKeyring(name string) error {
	_, err := answered(func() (string, error) { return "", keyring.Delete(service, name) })
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return wrap(err, "forget secrets", name)
}

var errSilent = errors.New("it did not answer; it may be locked, and wait for its password on another screen")

// answered is the result of ask, if it returns in time. The library takes no context, so a call that never returns
// stays behind; the command ends soon.
func answered(ask func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := ask()
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-time.After(patience):
		return "", errSilent
	}
}

func wrap(err error, op, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return &disdel.Error{
			Kind: disdel.NotFound, Op: op, Msg: "the keyring of this session has none of " + name,
			Hint: "add the context again: disdel context add NAME --keyring, with the secrets in variables or files",
		}
	default:
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: op, Msg: "this session has no keyring that answers", Err: err,
			Hint: "leave --keyring out: a context keeps its secrets in a file that nobody else may read; a keyring takes a " +
				"session with D-Bus and a secret service, such as GNOME's or KeePassXC",
		}
	}
}
