package wire

// List reads a counted list whose items take minBytes at least; nil if it is empty.
func List[T any](r *Reader, minBytes int, item func() T) []T {
	n := r.Count(minBytes)
	if n == 0 {
		return nil
	}
	// Items are larger in memory than on the wire, by a factor that a lying
	// count could use; so the list grows with what is really there.
	all := make([]T, 0, min(n, 1024))
	for range n {
		all = append(all, item())
		if r.Err() != nil {
			return nil
		}
	}
	return all
}
