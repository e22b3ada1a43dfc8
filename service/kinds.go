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

// kinds reads each kind of event, by its name. Nothing is worked out for it when a program begins: each container is
// one.
var kinds = map[string]func(data []byte) (Happening, error){
	"noted":      read[Noted],
	"probed":     read[Probed],
	"resumed":    read[Resumed],
	"planned":    read[Planned],
	"queued":     read[Queued],
	"admitted":   read[Admitted],
	"invoked":    read[Invoked],
	"ended":      read[Ended],
	"progress":   read[Progress],
	"stageBegan": read[StageBegan],
	"roundEnded": read[RoundEnded],
	"adjusted":   read[Adjusted],
	"forecast":   read[Forecast],
	"outage":     read[Outage],
	"waiting":    read[Waiting],
	"throttled":  read[Throttled],
	"pruned":     read[Pruned],
	"finished":   read[Finished],
}

func read[T Happening](data []byte) (Happening, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
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
