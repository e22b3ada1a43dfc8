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
