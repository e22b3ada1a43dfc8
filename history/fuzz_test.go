package history

import (
	"encoding/json"
	"testing"

	"github.com/disdel/disdel"
)

// Whatever a store holds is a record with the document's own id, or it is refused. A record that was read is read again
// from what is written of it.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"_id": "job-01m80104rj3cabn3tetc26z8w3", "id": "job-01m80104rj3cabn3tetc26z8w3", "apiVersion": "disdel/v1",
			"status": "failed", "rounds": [{"loss": 1e300}], "job": {"model": {"init": {"seed": 9223372036854775807}}}}`,
		`{"_id": "../x", "id": "../x", "apiVersion": "disdel/v1"}`, `{"apiVersion": "disdel/v9"}`, `{"tenant": 1}`, `[]`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tenantOf(data)
		r, err := decode(data)
		if err != nil {
			return
		}
		if !r.ID.Valid() || r.APIVersion != disdel.APIVersion {
			t.Fatalf("%q of %q is taken for a record", r.ID, r.APIVersion)
		}
		document, err := encodeRecord(&r)
		if err != nil {
			t.Fatal(err)
		}
		document["_id"] = string(r.ID)
		again, err := json.Marshal(document)
		if err == nil {
			_, err = decode(again)
		}
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	})
}
