package service_test

import (
	"context"
	"fmt"
	"log"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/infer"
)

// counted is a sink that counts answers.
type counted struct{ rows, right int }

func (c *counted) Begin(infer.DataHead) error { return nil }

func (c *counted) Take(row infer.DataRow) error {
	c.rows++
	if row.Class == int(row.Label) {
		c.right++
	}
	return nil
}

// Actions read what is held out of a data set and answer for it; their answers come row after row.
func ExampleService_InferData() {
	s, end := opened()
	defer end()
	ctx := context.Background()
	run, err := s.Submit(ctx, service.Request{Job: job()})
	if err != nil {
		log.Fatal(err)
	}
	rec, err := run.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	m, err := s.Trained(ctx, "digits")
	if err != nil {
		log.Fatal(err)
	}
	var said counted
	out, err := s.InferData(ctx, m, infer.DataRequest{Dataset: "digits", Part: disdel.PartTest}, &said)
	fmt.Println(said.rows, "rows, as many right as the job found:",
		said.right == out.Right && float64(said.right)/float64(said.rows) == rec.Accuracy, err)
	// Output: 359 rows, as many right as the job found: true <nil>
}

// A disk quota counts the rows of a data set before it is stored.
func ExampleInputBytes() {
	pixels := dataset.Samples{U8: make([]byte, 10*64), Labels: make([]int32, 10)}
	fmt.Println(service.InputBytes(&dataset.Input{Train: pixels}))
	// Output: 680 B
}

// The home has a data set and the file of the history. Nothing needs the data set.
func ExampleService_Stored() {
	s, end := opened()
	defer end()
	items, err := s.Stored(context.Background())
	for _, item := range items {
		fmt.Println(item.Kind, item.Name, item.Size > 0, item.Kept == "")
	}
	fmt.Println(err, s.RemoveStored(context.Background(), items[0]))
	// Output:
	// data digits true true
	// <nil> <nil>
}

func ExampleService_StoredOfAll() {
	ctx := context.Background()
	s, end := opened()
	defer end()
	if err := s.Tenant("ann").AddDigits(ctx); err != nil {
		fmt.Println(err)
	}
	items, err := s.StoredOfAll(ctx)
	for _, item := range items {
		if item.Kind == service.StoredData {
			fmt.Printf("%q %s\n", item.Tenant, item.Name)
		}
	}
	fmt.Println(err)
	// Output:
	// "" digits
	// "ann" digits
	// <nil>
}
