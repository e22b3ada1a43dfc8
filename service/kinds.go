package service

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// EventKind returns the name of an event's kind, as servers send it: its type with a small first letter.
func EventKind(what EventData) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", what), "service.")
	return strings.ToLower(name[:1]) + name[1:]
}

// kinds reads the data of each kind of event.
var kinds = map[string]func(data []byte) (EventData, error){
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

func read[T EventData](data []byte) (EventData, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}

// ReadEventData reads the data of an event from JSON. It returns Invalid for an unknown kind, such as one of a later
// version.
func ReadEventData(kind string, data []byte) (EventData, error) {
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
