package e2e

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestMemoryAtRest: soon after a load, and without the next one, memory that
// holds nothing any more goes back to the system.
func TestMemoryAtRest(t *testing.T) {
	s := start(t, t.TempDir())
	s.createTopic(t, "t", 1)
	cl := s.franz(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 200 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: make([]byte, 900_000)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	loaded := s.resident()
	eventually(t, "it gives memory back", func() bool { return s.resident() < loaded*4/5 })
	t.Logf("%d MiB after the load, %d MiB at rest", loaded>>20, s.resident()>>20)
}
