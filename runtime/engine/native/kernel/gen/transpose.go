package main

// transpose transposes a square that is one vector wide. Its arguments: dst, src, bytes of a row of dst and of src.
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
		first := m.transposeSquare()
		for i := range n {
			m.store(m.v(first+i), m.at(dst, 0))
			if i+1 < n {
				m.plus(dstRow, dst)
			}
		}
	})
}
