package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// told is what a program that shows jobs might say of an event, "" of those that it does not show.
func told(e service.Event) string {
	switch what := e.What.(type) {
	case service.Noted:
		return "note: " + what.Text
	case service.Probed:
		return fmt.Sprintf("a look at it found %v", what.Rate)
	case service.Resumed:
		return fmt.Sprintf("goes on at round %d of %d", what.Round+1, what.Rounds)
	case service.Planned:
		return fmt.Sprintf("accepted with %d workers", what.Plan.Workers)
	case service.Queued:
		return fmt.Sprintf("%d jobs go first", what.Ahead)
	case service.Admitted:
		return fmt.Sprintf("has %v", what.Room.Memory)
	case service.StageBegan:
		return what.Stage.Text()
	case service.RoundEnded:
		return fmt.Sprintf("round %d is over", what.Round.Round+1)
	case service.Adjusted:
		return fmt.Sprintf("%s is %s now", what.Field, what.To)
	case service.Outage, service.Waiting, service.Throttled:
		return e.What.String() // the platform, or actions on it, give no sign, or wait for a quota
	case service.Pruned:
		return fmt.Sprintf("%d older models are gone", len(what.Models))
	case service.Finished:
		return what.Status.String()
	case service.Invoked, service.Ended, service.Progress, service.Forecast:
		return "" // a table of what runs would show them
	}
	return ""
}

// Whoever looks on late goes on after the number that was seen last.
func ExampleEvent() {
	s, end := opened()
	defer end()
	run, err := s.Submit(context.Background(), service.Request{Job: job()})
	if err != nil {
		log.Fatal(err)
	}
	var seen int
	for e := range run.Events() {
		if seen = e.Number; told(e) == "round 1 is over" {
			fmt.Println(told(e))
			break
		}
	}
	for e := range run.EventsAfter(context.Background(), seen) {
		switch e.What.(type) {
		case service.RoundEnded, service.Finished:
			fmt.Println(told(e))
		}
	}
	// Output:
	// round 1 is over
	// round 2 is over
	// succeeded
}

// A job that cannot be planned has an estimation all the same, which says why.
func ExampleEstimation() {
	s, end := opened()
	defer end()
	var found *service.Estimation
	found, err := s.Estimate(context.Background(), service.Request{Job: job("resources.maxMemory=1MB")},
		service.Questions{Explain: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Plan == nil, found.Refused.Kind, errors.Is(found.Err(), found.Refused))
	// Output: true overLimit true
}

// The program of a network of one's own has to be there, and to say what it computes.
func ExampleDescribe() {
	_, err := service.FindProgram("/no/such/action")
	fmt.Println(err != nil)
	_, err = service.Describe(context.Background(), "/bin/false")
	fmt.Println(err != nil)
	// Output:
	// true
	// true
}

// The runtime of an action with the standard backends, for as long as ctx lives.
func ExampleServeAt() {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(service.ServeAt(ctx, "tcp:127.0.0.1:0"))
	// Output: <nil>
}

// Who has a token is one tenant, with a role; nothing that is kept tells the token.
func ExampleService_tenants() {
	s, end := opened()
	defer end()
	ctx := context.Background()
	token, err := s.Tenants().Create(ctx, "ann", tenant.RoleRead, nil)
	if err != nil {
		log.Fatal(err)
	}
	var role tenant.Role
	who, role, err := s.Tenants().Identify(ctx, token)
	fmt.Println(who, role, err)
	fmt.Println("may submit:", role.Allows(tenant.RoleSubmit))
	fmt.Println("is another's:", tenant.SameToken(token, "disdel_bob_00"))
	fmt.Println("models of ann:", s.Tenant(who) != s)
	// Output:
	// ann read <nil>
	// may submit: false
	// is another's: false
	// models of ann: true
}

// Events travel as JSON under the name of their kind.
func ExampleReadEventData() {
	sent := service.Queued{Ahead: 2}
	text, err := json.Marshal(sent)
	if err != nil {
		log.Fatal(err)
	}
	what, err := service.ReadEventData(service.EventKind(sent), text)
	fmt.Println(service.EventKind(sent), string(text), what, err)
	// Output: queued {"ahead":2} queued behind 2 <nil>
}

// An estimation that a server has sent says of itself what one of this process says.
func ExampleReadEstimation() {
	found, err := service.ReadEstimation([]byte(`{"fit": {"leastBytes": 134217728, "leastTask": "train"}}`),
		service.Questions{MaxMemory: 64 * disdel.MB})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Err())
	// Output: fit job: nothing of this job fits 64.0 MB: train takes 128 MB even with one row a batch
}

// A platform with two configured GPUs gives them to containers as CUDA numbers them.
func ExampleDevices() {
	for _, d := range service.Devices(service.GPUs{Count: 2, Memory: 16 * disdel.GB}) {
		fmt.Println(d.ID, d.Memory)
	}
	// Output:
	// 0 16.0 GB
	// 1 16.0 GB
}
