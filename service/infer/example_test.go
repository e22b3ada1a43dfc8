package infer_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"log"

	"github.com/disdel/disdel/service/infer"
)

// Rows come as JSON or .npy, nested as the network's input is, or flat.
func ExampleReadInputs() {
	in, err := infer.ReadInputs("rows.json", []byte(`[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]`), []int{2, 2})
	fmt.Println(in.Rows, err)
	_, err = infer.ReadInputs("rows.json", []byte(`[[1, 2, 3]]`), []int{2, 2})
	fmt.Println(err != nil)
	// Output:
	// [[1 2 3 4] [5 6 7 8]] <nil>
	// true
}

// A small file may hold a picture that takes much memory: a server counts it before it reads the pixels.
func ExamplePictureBytes() {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 1000, 1000))); err != nil {
		log.Fatal(err)
	}
	fmt.Println(infer.PictureBytes(file.Bytes()) > 1000*1000, infer.PictureBytes([]byte("0,1,2")))
	// Output: true 0 B
}
