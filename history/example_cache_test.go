package history_test

import (
	"context"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/test/historytest"
)

func ExampleRecordCache() {
	ctx := context.Background()
	s, end := opened()
	defer end()
	names := history.NewRecordCache(100, func(r *disdel.Record) string { return r.Job.Metadata.Name })
	for n := range 2 {
		r := historytest.Record(n)
		if err := s.Save(ctx, &r); err != nil {
			fmt.Println(err)
		}
		fmt.Println(names.List(ctx, s, history.Query{})) // reads the record that is new, and no other
	}
	// Output:
	// [name-0] <nil>
	// [name-1 name-0] <nil>
}

func ExampleSizeCache() {
	ctx := context.Background()
	s, end := opened()
	defer end()
	var sizes history.SizeCache
	before, err := sizes.Total(ctx, s)
	if err != nil {
		fmt.Println(err)
	}
	r := historytest.Record(0)
	if err := s.Save(ctx, &r); err != nil {
		fmt.Println(err)
	}
	after, err := sizes.Total(ctx, s) // reads the new record
	fmt.Println(before, after > 100, err)
	// Output: 0 B true <nil>
}
