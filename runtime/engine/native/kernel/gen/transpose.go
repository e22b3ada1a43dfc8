package main

// shuffler transposes within registers.
type shuffler interface {
	// shuffle transposes the square of values in vectors 0 and up, and says which vector has its first row then.
	shuffle() int
}

// transpose moves a square block, one vector wide: arguments dst 0, src 8, bytes of a row of dst 16 and of src 24.
func transpose(m machine) {
	m.function("transpose", "*transposeArgs", func(args register) {
		dst, src, dstRow, srcRow := m.field(args, 0), m.field(args, 8), m.field(args, 16), m.field(args, 24)
		n := m.size() / 4
		for i := range n {
			m.load(m.at(src, 0), m.v(i))
			if i+1 < n {
				m.plus(srcRow, src)
			}
		}
		first := m.shuffle()
		for i := range n {
			m.store(m.v(first+i), m.at(dst, 0))
			if i+1 < n {
				m.plus(dstRow, dst)
			}
		}
	})
}
