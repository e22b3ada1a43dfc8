package dataset_test

import (
	"context"
	"fmt"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// A job that wants larger images than a data set has gets them as its batches are made.
func ExampleStore_ReadTrain_resized() {
	folder, err := os.MkdirTemp("", "data-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	store, err := dataset.OpenStore(ctx, "file://"+folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	m, err := store.Add(ctx, dataset.Input{Name: "dots", Train: dataset.Samples{
		Shape: []int{1, 2, 2}, U8: []byte{0, 4, 8, 12}, Labels: []int32{0},
	}}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	shard, err := store.ReadTrain(ctx, disdel.DataRef{Name: "dots", Checksum: m.Checksum(), Resize: 3},
		disdel.RowRange{End: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := dataset.NewBatch(1, shard.SampleLen())
	shard.Fill(&b, []int32{0})
	fmt.Println(b.Input.Values)
	// Output: [0 2 4 4 6 8 8 10 12]
}

// An image that is asked about becomes as large as those that a network was trained on.
func ExampleResize() {
	image, err := dataset.Resize([]float32{0, 4, 8, 12}, []int{1, 2, 2}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(image)
	// Output: [0 2 4 4 6 8 8 10 12]
}
