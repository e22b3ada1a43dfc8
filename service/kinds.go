package service

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// NameOf is the name of a kind of event, as servers send it: that of its type, with a small letter.
func NameOf(what Happening) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", what), "service.")
	return strings.ToLower(name[:1]) + name[1:]
}

// kinds reads each kind of event.
var kinds = readers(
	read[Noted], read[Probed], read[Resumed], read[Planned], read[Queued], read[Admitted], read[Invoked], read[Ended],
	read[Progress], read[StageBegan], read[RoundEnded], read[Adjusted], read[Forecast], read[Outage], read[Waiting],
	read[Pruned], read[Finished],
)

type reader func(data []byte) (Happening, error)

func read[T Happening](data []byte) (Happening, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}

// readers are those of each kind, by its name.
func readers(all ...reader) map[string]reader {
	out := map[string]reader{}
	for _, r := range all {
		zero, _ := r([]byte("{}")) // every kind is an object
		out[NameOf(zero)] = r
	}
	return out
}

// ReadHappening reads what an event tells from the JSON that it was written as. It returns Invalid for a kind that
// nobody knows, such as one of a later version.
func ReadHappening(kind string, data []byte) (Happening, error) {
	r, known := kinds[kind]
	if !known {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read event", Msg: fmt.Sprintf("no event is known as %.40q", kind),
		}
	}
	what, err := r(data)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read event", Msg: kind, Err: err}
	}
	return what, nil
}
