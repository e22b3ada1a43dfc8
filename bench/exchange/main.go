// Command exchange measures models of sparse rows, and what exchanging updates after every step would come to, and
// prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing. Rows a second are measured on one processor. All else is learned for real (gradients, filter,
// order of addition) by replicas in one process, and timed by a virtual clock: how long a step takes is its rows, its
// bytes over a server that all share, and a draw for stragglers. The clock is not calibrated by real exchanges, which
// are not there yet; the server is as slow as makes bulk synchronous steps four fifths communication, as the target
// has it. Seeds are fixed, so that two runs print the same but for rows a second.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	movielens := flag.String("movielens", ".cache/movielens/ml-100k.inter", "file of MovieLens-100K; made ratings where it is not there")
	seeds := flag.Int("seeds", 5, "seeds of figures that are means")
	flag.Parse()
	if err := run(context.Background(), *movielens, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, movielens string, seeds int) error {
	films, err := loadRatings(ctx, movielens)
	if err != nil {
		return err
	}
	ads, err := loadClicks(ctx)
	if err != nil {
		return err
	}
	for _, measure := range []func() error{
		func() error { return speed(films, ads) },
		func() error { return significance(films) },
		func() error { return gap(films, ads, seeds) },
		func() error { return slack(films) },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}
