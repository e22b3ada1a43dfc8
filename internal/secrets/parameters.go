package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/disdel/disdel"
)

// fields are the parameters of an activation that have passwords in them.
var fields = []string{"store"}

// Key seals parameters and opens what was sealed.
type Key [32]byte

// NewKey is a random key.
func NewKey() (k Key) {
	rand.Read(k[:])
	return k
}

// Of is the key of one action. It reveals neither k nor the keys of other actions.
func (k Key) Of(action disdel.ActionName) Key {
	m := hmac.New(sha256.New, k[:])
	m.Write([]byte(action))
	return Key(m.Sum(nil))
}

// mark begins the code of an action that is given a key. No base64 has a colon: OpenWhisk takes such code for a binary.
const mark = "disdel:"

// Code is the code of an action that gets the key. Its container receives it with /init, and no activation has it.
func (k Key) Code() string { return mark + hex.EncodeToString(k[:]) }

// FromCode is the key in the code of an action; ok is false if there is none.
func FromCode(code string) (k Key, ok bool) {
	text, ok := strings.CutPrefix(code, mark)
	if !ok {
		return k, false
	}
	n, err := hex.Decode(k[:], []byte(text[:min(len(text), 2*len(k))]))
	return k, err == nil && n == len(k) && len(text) == 2*len(k)
}

// box is a sealed value.
type box struct {
	Sealed []byte `json:"sealed"` // the nonce, and then what AES-256-GCM makes of the value's JSON and the field's name
}

// Seal encrypts the fields of parameters that have passwords. It leaves other parameters as they are.
func (k Key) Seal(params json.RawMessage) (json.RawMessage, error) {
	return k.each(params, func(c cipher.AEAD, name string, value json.RawMessage) (json.RawMessage, error) {
		nonce := make([]byte, c.NonceSize())
		rand.Read(nonce)
		return json.Marshal(box{c.Seal(nonce, nonce, value, []byte(name))})
	})
}

// Open decrypts parameters that Seal encrypted, and leaves others as they are. It returns Denied for another key or
// changed data.
func (k Key) Open(params json.RawMessage) (json.RawMessage, error) {
	return k.each(params, func(c cipher.AEAD, name string, value json.RawMessage) (json.RawMessage, error) {
		var b box
		if json.Unmarshal(value, &b) != nil || b.Sealed == nil {
			return value, nil
		}
		var text []byte
		err := error(nil)
		if n := c.NonceSize(); len(b.Sealed) >= n {
			text, err = c.Open(nil, b.Sealed[:n], b.Sealed[n:], []byte(name))
		}
		if err != nil || text == nil {
			return nil, &disdel.Error{
				Kind: disdel.Denied, Op: "open parameters", Msg: "the parameter " + name + " was sealed for another action",
				Hint: "invoke the action by the program that created it",
			}
		}
		return text, nil
	})
}

// each changes the fields that have passwords.
func (k Key) each(params json.RawMessage, change func(cipher.AEAD, string, json.RawMessage) (json.RawMessage, error),
) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if json.Unmarshal(params, &all) != nil {
		return params, nil
	}
	block, err := aes.NewCipher(k[:])
	if err != nil {
		return nil, err
	}
	c, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	changed := false
	for _, name := range fields {
		value, there := all[name]
		if !there {
			continue
		}
		if all[name], err = change(c, name, value); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return params, nil
	}
	return json.Marshal(all)
}
